"""
Fetch what a run's report is made of.

Every rollout is listed with the sum of its calls; single calls are read from
some of them only, spread evenly over the run, since a run may have millions.
"""

import asyncio
from datetime import UTC, datetime
from typing import Final

from rollcage.client import AsyncClient
from rollcage.client.errors import RolloutUnknown
from rollcage.client.models import Step, TalliedRollout
from rollcage.reports.run_data import RunData, RunRollout, ToolCall

# Enough to be quick, few enough that a training run does not notice.
_AT_ONCE: Final = 8
_PAGE: Final = 500
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


async def gathered(client: AsyncClient, run: str, *, trajectories: int, now: datetime, step: int = 0) -> RunData:
    """Read a run's record; RunUnknown if there is none."""
    health = await client.health(run)
    found = [one async for one in client.tallied(run, page=_PAGE)]
    found.sort(key=lambda one: one.begun_at or _LONG_AGO)
    chosen = spread([one.rollout for one in found if one.calls], trajectories)
    gate = asyncio.Semaphore(_AT_ONCE)
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_calls(client, rollout, gate)) for rollout in chosen]
    except ExceptionGroup as several:
        # They ask the same service for the same kind of thing: the first says it all.
        raise several.exceptions[0] from several
    return RunData(
        run=run,
        url=client.url,
        now=now,
        advice=health.advice,
        reasons=health.reasons,
        causes=health.causes,
        rollouts=tuple(map(_rollout, found)),
        calls=tuple(call for task in tasks for call in task.result()),
        sampled=len(chosen),
        step=step,
    )


def spread(names: list[str], most: int) -> list[str]:
    """Return at most so many, evenly from first to last."""
    if len(names) <= most:
        return names
    return [names[index * len(names) // most] for index in range(most)]


async def _calls(client: AsyncClient, rollout: str, gate: asyncio.Semaphore) -> list[ToolCall]:
    async with gate:
        try:
            return [_call(step) async for step in client.trajectory(rollout, page=_PAGE)]
        except RolloutUnknown:
            # Its record came to its end between the listing and now.
            return []


def _call(step: Step) -> ToolCall:
    seconds = (step.finished_at - step.begun_at).total_seconds() if step.finished_at else None
    return ToolCall(step.tool, step.outcome or "lost", seconds, len(step.output or ""))


def _rollout(one: TalliedRollout) -> RunRollout:
    verdict = one.verdict
    return RunRollout(
        rollout=one.rollout,
        begun_at=one.begun_at,
        calls=one.tally.calls,
        repeated=one.tally.repeated,
        word=verdict.word if verdict else "",
        cause=verdict.cause if verdict else "",
        score=one.score,
        item=one.item,
    )
