"""
Use cases that do as they are told, for tests of the gateway alone.

Remembers what it was asked and answers what the test says; by default every
call succeeds and echoes its arguments.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from rollcage.core.errors import OverQuota, RolloutUnknown
from rollcage.core.health import Figures, judge_run
from rollcage.core.verdict_words import Cause, Word
from rollcage.rollouts.actions import Action, Answer, Outcome
from rollcage.rollouts.errors import RunUnknown
from rollcage.rollouts.routes import Reach
from rollcage.rollouts.views import RolloutVerdict, Step
from rollcage.store.records import Page, Sandbox, Standing, State
from rollcage.store.reservations import Reservation
from rollcage.store.rollouts import Settled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from rollcage.core.health import Health
    from rollcage.core.ids import RolloutId, RunId
    from rollcage.rollouts.plainly import Asker

# Rollouts and runs whose names begin so are known.
KNOWN = ("trace", "run", "r-", "0")

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def answered(output: str, outcome: Outcome = Outcome.OK, **changes: Any) -> Answer:
    """Return an answer as a sandbox's result would give it."""
    result = {"output": output, "class": outcome, "data": {"stdout": output}, "facts": {"exit_code": 0}}
    return Answer(output, outcome, json.dumps(result).encode(), **changes)


async def echo(action: Action) -> Answer:
    """Answer with the arguments."""
    given = action.arguments
    return answered(given if isinstance(given, str) else json.dumps(given))


@dataclass
class Scripted:
    """What the gateway calls, and a list of what it called."""

    acting: Callable[[Action], Awaitable[Answer]] = echo
    actions: list[Action] = field(default_factory=list)
    ended: list[tuple[str, RolloutId, str, str]] = field(default_factory=list)
    # Answer calls that are started as if they were plain.
    plainly: bool = False

    async def act(self, action: Action) -> Answer:
        self.actions.append(action)
        return await self.acting(action)

    def start(self, action: Action, asker: Asker) -> None:
        if self.plainly:
            self._running = asyncio.ensure_future(self.act(action))
            self._running.add_done_callback(partial(_heard, asker))
        else:
            asker.otherwise(self.act(action))

    async def finish(self, rollout: RolloutId, *, run: str, environment: str) -> Settled:
        return self._end("finish", rollout, run, environment)

    async def delete(self, rollout: RolloutId, *, run: str, environment: str) -> Settled:
        return self._end("delete", rollout, run, environment)

    async def verdict(self, rollout: RolloutId) -> RolloutVerdict:
        """Know those rollouts whose names begin so."""
        if not rollout.name.startswith(KNOWN):
            raise RolloutUnknown(rollout=rollout.name)
        return RolloutVerdict(
            rollout=rollout,
            run="default",
            environment="small",
            state=State.ENDED,
            word=Word.MASKED,
            cause=Cause.EVICTED,
            by="controller",
            at=NOON,
            sandbox=Sandbox("sbx-1", "small", "10.0.0.1:8750"),
            calls=1,
            delivered=1,
            placements=1,
            begun_at=NOON,
            ended_at=NOON,
            evidence=('{"noticed_by": "controller"}',),
        )

    async def trajectory(self, rollout: RolloutId, *, cursor: str | None = None, limit: int = 100) -> Page[Step]:
        assert limit
        step = Step(1, "c1", "shell", {"command": rollout.name}, NOON, NOON, Outcome.OK, "x\n", {}, {"exit_code": 0})
        return Page((step,) if cursor is None else (), None)

    async def reach(self, rollout: RolloutId) -> Reach:
        if not rollout.name.startswith(KNOWN):
            raise RolloutUnknown(rollout=rollout.name)
        # A port that nobody listens on: a transfer finds nobody.
        return Reach("http://127.0.0.1:9", {})

    async def health(self, run: RunId) -> Health:
        if not run.name.startswith(KNOWN):
            raise RunUnknown(run=run.name)
        return judge_run(Figures(40, 0, 40, 100, masked=4, trainable=36, abandoned=0, causes={"evicted": 4}))

    async def reserve(
        self, run: RunId, *, environment: str, reservation: str, count: int, ttl: timedelta, quota: int
    ) -> Reservation:
        assert run.name
        assert environment
        assert reservation
        if count > quota:
            raise OverQuota(wanted=count, held=0, quota=quota)
        return Reservation(count, count, 0, NOON + ttl)

    def _end(self, how: str, rollout: RolloutId, run: str, environment: str) -> Settled:
        self.ended.append((how, rollout, run, environment))
        return Settled(Standing(Word.TRAINABLE, Cause.FINISHED, "gateway", NOON), first=True, sandbox=None)


def _heard(asker: Asker, acting: asyncio.Future[Answer]) -> None:
    asker.known(acting.result())
    asker.recorded()
