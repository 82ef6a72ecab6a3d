"""
A rollout's record as others may see it: its verdict with the evidence, its steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from rollcage.core.ids import RolloutId
from rollcage.store.calls import CallRecord
from rollcage.store.records import Rollout, Sandbox, State


@dataclass(frozen=True, slots=True)
class RolloutVerdict:
    """How a rollout stands; without *word* it has not been decided."""

    rollout: RolloutId
    run: str
    environment: str
    state: State
    word: str | None
    cause: str | None
    by: str | None
    at: datetime | None
    sandbox: Sandbox | None
    calls: int
    delivered: int
    placements: int
    begun_at: datetime | None
    ended_at: datetime | None
    # JSON, oldest first.
    evidence: tuple[str, ...]
    score: float | None = None
    item: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a trajectory, as it was asked and as the model saw it; without *output* nothing is known of it."""

    number: int
    call_id: str
    tool: str
    arguments: Any
    begun_at: datetime
    finished_at: datetime | None
    outcome: str | None
    output: str | None
    data: Mapping[str, Any]
    facts: Mapping[str, Any]


def verdict_of(rollout: RolloutId, record: Rollout, evidence: tuple[str, ...]) -> RolloutVerdict:
    """Show how a rollout stands."""
    standing, run = record.verdict, record.subject.run
    return RolloutVerdict(
        rollout=rollout,
        run=run.name if run else "",
        environment=record.subject.environment,
        state=record.state,
        word=standing.word if standing else None,
        cause=standing.cause if standing else None,
        by=standing.by if standing else None,
        at=standing.at if standing else None,
        sandbox=record.sandbox,
        calls=record.calls,
        delivered=record.delivered,
        placements=record.placements,
        begun_at=record.begun_at,
        ended_at=record.ended_at,
        evidence=evidence,
        score=record.score,
        item=record.item,
    )


def step_of(record: CallRecord) -> Step:
    """Show one call."""
    asked = orjson.loads(record.arguments)
    came = orjson.loads(record.result) if record.result is not None else {}
    return Step(
        number=record.number,
        call_id=record.id,
        tool=asked["tool"],
        arguments=asked["arguments"],
        begun_at=record.begun_at,
        finished_at=record.finished_at,
        outcome=record.outcome,
        output=came.get("output"),
        data=came.get("data", {}),
        facts=came.get("facts", {}),
    )
