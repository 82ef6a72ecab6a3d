"""
What every native route begins with: the parts, the tenant, a place among the calls in flight.
"""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Depends, Path, Query, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from rollcage.core.environment import Environment
from rollcage.core.ids import BadId, RolloutId, RunId, environment_name
from rollcage.gateway.auth import admitted, bearer
from rollcage.gateway.errors import EnvironmentUnknown
from rollcage.gateway.ports import Parts
from rollcage.gateway.tenants import Tenant

_IDS = r"^[A-Za-z0-9_.:-]{1,200}$"

# Only for the OpenAPI: whose token it is, is decided in one place for all dialects.
_bearer = HTTPBearer(auto_error=False, scheme_name="Token")


def _parts(request: Request) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


async def _tenant(
    request: Request,
    parts: Annotated[Parts, Depends(_parts)],
    _credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> AsyncIterator[Tenant]:
    tenant = admitted(parts.tenants, parts.metrics, bearer(request.headers.get("authorization")))
    parts.admission.enter(tenant)
    try:
        yield tenant
    finally:
        parts.admission.leave(tenant)


GivenParts = Annotated[Parts, Depends(_parts)]
# Left when the answer is sent, so that a long one counts as long as it lasts.
GivenTenant = Annotated[Tenant, Depends(_tenant)]


def _rollout(tenant: GivenTenant, rollout: Annotated[str, Path(pattern=_IDS)]) -> RolloutId:
    return RolloutId(tenant.name, rollout)


def _run(tenant: GivenTenant, run: Annotated[str, Path(pattern=_IDS)]) -> RunId:
    return RunId(tenant.name, run)


GivenRollout = Annotated[RolloutId, Depends(_rollout)]
GivenRun = Annotated[RunId, Depends(_run)]
Cursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,20}$", description="Where the page before ended.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]


def known_environment(parts: Parts, name: str) -> Environment:
    """Return an environment by name, or raise EnvironmentUnknown."""
    found = parts.environments.get(name)
    if found is None:
        try:
            shown = environment_name(name)
        except BadId:
            shown = ""
        raise EnvironmentUnknown(environment=shown)
    return found
