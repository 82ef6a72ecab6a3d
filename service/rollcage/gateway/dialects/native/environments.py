"""
Environments, and their tools as trainers' jobs and datasets want them.
"""

from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Query, Request

from rollcage.core.environment import Environment
from rollcage.gateway.definitions import definitions, job_tools, tool_names
from rollcage.gateway.dialects.native.access import GivenParts, GivenTenant, known_environment
from rollcage.gateway.dialects.native.shapes import EnvironmentList, EnvironmentShape, Id, ToolList

router = APIRouter(prefix="/environments", tags=["environments"])

# A job's list has a place for the token; the token itself is the reader's to fill in.
_HEADERS: Final = {"Authorization": "Bearer $ROLLCAGE_TOKEN"}

Name = Annotated[str, Path(max_length=253)]


class Form(StrEnum):
    """How tools are defined: in datasets, in the Responses API, in an Agent RFT job."""

    CHAT_COMPLETIONS = "chat_completions"
    RESPONSES = "responses"
    JOB = "job"


@router.get("", summary="All environments")
async def listed(parts: GivenParts, _tenant: GivenTenant) -> EnvironmentList:
    """Return all environments, by name."""
    return EnvironmentList(environments=tuple(_shape(parts.environments[name]) for name in sorted(parts.environments)))


@router.get("/{environment}", summary="One environment")
async def one(environment: Name, parts: GivenParts, _tenant: GivenTenant) -> EnvironmentShape:
    """Return one environment."""
    return _shape(known_environment(parts, environment))


@router.get("/{environment}/tools", summary="Its tools, in the form that is asked for")
async def tools(
    environment: Name,
    parts: GivenParts,
    request: Request,
    _tenant: GivenTenant,
    form: Form = Form.CHAT_COMPLETIONS,
    run: Annotated[Id, Query(description="The run that a job's addresses name.")] = "default",
) -> ToolList:
    """Return the tools of an environment; ``job`` is the list of addresses for an Agent RFT job."""
    return ToolList(tools=tuple(_tools(known_environment(parts, environment), form, str(request.base_url), run)))


def _tools(environment: Environment, form: Form, base: str, run: str) -> list[dict[str, Any]]:
    if form is Form.JOB:
        url = f"{base.rstrip('/')}/agent-rft/runs/{run}/environments/{environment.name}/tools"
        return job_tools(environment, server_url=url, headers=_HEADERS)
    offered = definitions(environment)
    if form is Form.RESPONSES:
        return [tool.responses() for tool in offered]
    return [tool.chat_completions() for tool in offered]


def _shape(environment: Environment) -> EnvironmentShape:
    spec = environment.spec
    return EnvironmentShape(
        name=environment.name,
        description=spec.description,
        tools=tool_names(environment),
        limits=spec.limits.model_dump(by_alias=True),
        budgets=spec.budgets.model_dump(by_alias=True),
    )
