"""
Compare the record with what is there, now and then.

Finds what no event tells: rollouts that nobody calls for any more, sandboxes
that went while nobody looked, deletions that were never ticked off.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog

from rollcage.controller.sentence import BY
from rollcage.core.verdict_facts import Setback, WentWrong
from rollcage.core.verdict_words import Cause, Word
from rollcage.core.verdicts import judge

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from collections.abc import Set as AbstractSet

    from rollcage.controller.deaths import Deaths
    from rollcage.controller.sentence import Sentence
    from rollcage.core.environment import Environment
    from rollcage.store.records import Rollout
    from rollcage.store.store import Leader, Store

log = structlog.get_logger(__name__)

# Beyond what a call may take, for its way here and back.
_CALL_MARGIN: Final = 60


class Audit:
    """Looks at every environment once in a while."""

    def __init__(self, store: Store, leader: Leader, deaths: Deaths, sentence: Sentence, *, every: timedelta) -> None:
        self._store = store
        self._leader = leader
        self._deaths = deaths
        self._sentence = sentence
        self._every = every.total_seconds()
        self._due = 0.0
        # By environment: bound, and not there when it was last looked at.
        self._missing: dict[str, set[str]] = {}

    async def run_if_due(
        self, environments: Mapping[str, Environment], names: Collection[str], there: AbstractSet[str], now: float
    ) -> None:
        """Audit the environments called *names*, *there* being the sandboxes that exist, unless it was done lately."""
        if now < self._due:
            return
        self._due = now + self._every
        for name in names:
            if name in environments:
                await self._end_abandoned(environments[name])
            for ghost in await self._store.pools.offered(name) - there:
                await self._deaths.vanished(ghost, name)
            await self._settle_vanished(name, there)
            for spent in await self._leader.pools.spent(name):
                if spent not in there:
                    await self._leader.pools.forget(spent, environment=name)

    async def _end_abandoned(self, environment: Environment) -> None:
        for rollout in await self._store.pools.idle(environment.name, since=patience(environment)):
            await self._abandon(rollout)

    async def _abandon(self, rollout: Rollout) -> None:
        judgement = judge(WentWrong(Setback.TRAINER_SILENT))
        evidence = json.dumps({"noticed_by": BY, "calls": rollout.calls})
        await self._sentence.give(
            rollout.subject, judgement.word or Word.ABANDONED, judgement.cause or Cause.TRAINER_SILENT, evidence
        )
        log.info("rollout_abandoned", rollout=rollout.subject.key, environment=rollout.subject.environment)

    async def _settle_vanished(self, environment: str, there: AbstractSet[str]) -> None:
        """Settle what is still bound the second time: a first call that found nobody there is about to go elsewhere."""
        missing: set[str] = set()
        cursor: str | None = None
        while True:
            page = await self._store.pools.bindings(environment, cursor=cursor)
            missing |= {one.sandbox.name for one in page.items if one.sandbox} - there
            if page.cursor is None:
                break
            cursor = page.cursor
        for name in missing & self._missing.get(environment, set()):
            await self._deaths.vanished(name, environment)
        self._missing[environment] = missing


def patience(environment: Environment) -> timedelta:
    """Return how long nothing may happen to a rollout; a call that runs counts from its beginning."""
    longest_call = environment.spec.limits.max_timeout_seconds + _CALL_MARGIN
    return timedelta(seconds=max(environment.spec.budgets.idle_seconds, longest_call))
