"""
Rollouts: making calls, ending them, and reading what became of them.
"""

import json
import secrets
from collections.abc import AsyncIterator
from enum import StrEnum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from rollcage.core.errors import RolloutUnknown
from rollcage.core.ids import RolloutId, RunId, tenant_key
from rollcage.gateway.dialects.native.access import (
    Cursor,
    GivenParts,
    GivenRollout,
    GivenTenant,
    Limit,
    known_environment,
)
from rollcage.gateway.dialects.native.listing import shape_of_record, shape_of_report, shape_of_verdict
from rollcage.gateway.dialects.native.shapes import (
    CallAnswer,
    CallRequest,
    EndRequest,
    Id,
    RolloutPage,
    RolloutShape,
    StepShape,
    TrajectoryPage,
    VerdictAnswer,
)
from rollcage.gateway.ports import Parts, UseCases
from rollcage.gateway.watching import shown, watched
from rollcage.rollouts.actions import Action
from rollcage.store.rollouts import Label
from rollcage.telemetry.logs import about

router = APIRouter(prefix="/rollouts", tags=["rollouts"])


_EVENT: Final = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["output", "gap", "result", "error"]},
        "data": {"type": "string", "description": "JSON."},
    },
}


class End(StrEnum):
    """How a rollout is ended: to be trained on, or not wanted any more."""

    FINISH = "finish"
    DELETE = "delete"


@router.get("", summary="Rollouts, newest first")
async def listed(
    *,
    parts: GivenParts,
    tenant: GivenTenant,
    run: Annotated[Id | None, Query(description="Only of this run.")] = None,
    label: Annotated[Label, Query(description="Only those that are so.")] = Label.ALL,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> RolloutPage:
    """Return a page of the tenant's rollouts."""
    records = parts.records
    if run is None:
        page = await records.of_tenant(tenant_key(tenant.name), label, cursor=cursor, limit=limit)
    else:
        page = await records.of_run(RunId(tenant.name, run).key, label, cursor=cursor, limit=limit)
    return RolloutPage(rollouts=tuple(map(shape_of_record, page.items)), cursor=page.cursor)


@router.get("/{rollout}", summary="One rollout")
async def one(rollout: GivenRollout, parts: GivenParts) -> RolloutShape:
    """Return how a rollout stands."""
    return shape_of_report(await parts.use_cases.verdict(rollout))


@router.get("/{rollout}/verdict", summary="Its verdict, with the evidence")
async def verdict(rollout: GivenRollout, parts: GivenParts) -> VerdictAnswer:
    """Return the verdict; null while the rollout runs."""
    report = await parts.use_cases.verdict(rollout)
    shape = shape_of_report(report)
    evidence = tuple(json.loads(piece) for piece in report.evidence)
    return VerdictAnswer(
        rollout=rollout.name, verdict=shape_of_verdict(report), sandbox=shape.sandbox, evidence=evidence
    )


@router.post("/{rollout}/calls", summary="Call a tool")
async def call(rollout: GivenRollout, request: CallRequest, parts: GivenParts) -> CallAnswer:
    """Run a tool once in the rollout's sandbox, which its first call claims."""
    action = _action(rollout, request, parts)
    with about(rollout=rollout.name, call=action.call_id, run=action.run):
        return CallAnswer(**shown(action, await parts.use_cases.act(action)))


@router.post(
    "/{rollout}/calls/stream",
    summary="Call a tool and watch it",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": _EVENT}}}},
)
async def call_and_watch(rollout: GivenRollout, request: CallRequest, parts: GivenParts) -> StreamingResponse:
    """
    Run a tool once, and send server-sent events while it runs.

    ``output`` (stream, text or base64) and ``gap`` (bytes that were missed), then
    ``result``, which is what the plain call answers, or ``error``, a problem.
    """
    events = watched(parts.use_cases, _action(rollout, request, parts))
    return StreamingResponse(events, media_type="text/event-stream", headers={"cache-control": "no-store"})


@router.post("/{rollout}/finish", summary="End it; it may be trained on")
async def finish(rollout: GivenRollout, parts: GivenParts, where: EndRequest | None = None) -> RolloutShape:
    """End the rollout and free its sandbox. A verdict that stands already stays."""
    return await _end(End.FINISH, rollout, parts, where)


@router.delete("/{rollout}", summary="End it; nobody wants it any more")
async def delete(rollout: GivenRollout, parts: GivenParts) -> RolloutShape:
    """End the rollout and free its sandbox; its record is kept. A verdict that stands already stays."""
    return await _end(End.DELETE, rollout, parts, None)


@router.get("/{rollout}/trajectory", summary="Its calls, a page at a time")
async def trajectory(
    rollout: GivenRollout, parts: GivenParts, cursor: Cursor = None, limit: Limit = 100
) -> TrajectoryPage:
    """Return calls in the order in which they began."""
    await parts.use_cases.verdict(rollout)
    page = await parts.use_cases.trajectory(rollout, cursor=cursor, limit=limit)
    return TrajectoryPage(steps=tuple(map(StepShape.model_validate, page.items)), cursor=page.cursor)


@router.get(
    "/{rollout}/trajectory.jsonl",
    summary="All its calls, one JSON text per line",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}},
)
async def trajectory_lines(rollout: GivenRollout, parts: GivenParts) -> StreamingResponse:
    """Stream all calls in the order in which they began."""
    await parts.use_cases.verdict(rollout)
    return StreamingResponse(_lines(parts.use_cases, rollout), media_type="application/x-ndjson")


def _action(rollout: RolloutId, request: CallRequest, parts: Parts) -> Action:
    return Action(
        rollout=rollout,
        run=request.run,
        environment=known_environment(parts, request.environment),
        call_id=request.call_id or secrets.token_hex(16),
        tool=request.tool,
        arguments={} if request.arguments is None else request.arguments,
        within=parts.limits.native_seconds,
        max_waiting=parts.limits.waiting_rollouts,
    )


async def _lines(use_cases: UseCases, rollout: RolloutId) -> AsyncIterator[str]:
    cursor: str | None = None
    while True:
        page = await use_cases.trajectory(rollout, cursor=cursor)
        for step in page.items:
            yield StepShape.model_validate(step).model_dump_json() + "\n"
        cursor = page.cursor
        if cursor is None:
            return


async def _end(how: End, rollout: RolloutId, parts: Parts, where: EndRequest | None) -> RolloutShape:
    named: dict[str, Any] = await _place(rollout, parts, where)
    ending = parts.use_cases.finish if how is End.FINISH else parts.use_cases.delete
    await ending(rollout, **named)
    return shape_of_report(await parts.use_cases.verdict(rollout))


async def _place(rollout: RolloutId, parts: Parts, where: EndRequest | None) -> dict[str, Any]:
    """Return run and environment of a rollout: from its record, else as the request says."""
    try:
        report = await parts.use_cases.verdict(rollout)
    except RolloutUnknown:
        if where is None or where.environment is None:
            raise
        return {"run": where.run, "environment": known_environment(parts, where.environment).name}
    return {"run": report.run, "environment": report.environment}
