"""
The use cases as a gateway holds them: act, finish, delete, look, reserve.

Put together here, and closed here: connections to sandboxes, results that wait
to be recorded, calls whose callers went away.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

from rollcage.core.errors import RolloutUnknown
from rollcage.core.health import Figures, Health, judge_run
from rollcage.core.ids import RolloutId, RunId
from rollcage.core.verdict_words import Cause, Word
from rollcage.rollouts.act import Acting
from rollcage.rollouts.actions import Action, Answer
from rollcage.rollouts.backlog import Backlog
from rollcage.rollouts.beginning import Beginning
from rollcage.rollouts.closing import Closing, refusal
from rollcage.rollouts.errors import RunUnknown
from rollcage.rollouts.later import Later
from rollcage.rollouts.line import Line
from rollcage.rollouts.patience import Patience
from rollcage.rollouts.plainly import Asker
from rollcage.rollouts.routes import Reach, Routes
from rollcage.rollouts.sending import Sending
from rollcage.rollouts.spans import Tracer, followed_calls, followed_parts
from rollcage.rollouts.toolservers import Toolservers
from rollcage.rollouts.views import RolloutVerdict, Step, step_of, verdict_of
from rollcage.rollouts.witness import SILENT, Witness
from rollcage.store.records import Page, Sandbox, Subject, Verdict
from rollcage.store.recovery import Phase
from rollcage.store.reservations import Reservation
from rollcage.store.rollouts import Settled
from rollcage.store.store import Store, plain_errors
from rollcage.wire.tokens import Signer

BY_TRAINER: Final = "trainer"


@dataclass(frozen=True, slots=True)
class UseCases:
    """What can be asked about rollouts, in no trainer's dialect."""

    _store: Store
    _acting: Acting
    _routes: Routes
    _witness: Witness

    async def act(self, action: Action) -> Answer:
        """Run one call; see ``act``."""
        return await self._acting.act(action)

    def start(self, action: Action, asker: Asker) -> None:
        """Run one call without waiting for it; see ``plainly``."""
        self._acting.start(action, asker)

    async def finish(self, rollout: RolloutId, *, run: str, environment: str) -> Settled:
        """End a rollout at its trainer's word: it may be trained on, unless it has a verdict already."""
        return await self._end(Subject.of(rollout, run=run, environment=environment), Word.TRAINABLE, Cause.FINISHED)

    async def delete(self, rollout: RolloutId, *, run: str, environment: str) -> Settled:
        """End a rollout that its trainer gave up."""
        subject = Subject.of(rollout, run=run, environment=environment)
        return await self._end(subject, Word.ABANDONED, Cause.DELETED_BY_TRAINER)

    async def verdict(self, rollout: RolloutId) -> RolloutVerdict:
        """Say how a rollout stands, with all evidence; raises RolloutUnknown."""
        record, evidence = await asyncio.gather(
            self._store.rollouts.get(rollout.key), self._store.rollouts.evidence(rollout.key)
        )
        if record is None:
            raise RolloutUnknown(rollout=rollout.name)
        return verdict_of(rollout, record, evidence)

    async def trajectory(self, rollout: RolloutId, *, cursor: str | None = None, limit: int = 100) -> Page[Step]:
        """Return a rollout's calls in the order in which they began, a page at a time."""
        page = await self._store.calls.trajectory(rollout.key, cursor=cursor, limit=limit)
        return Page(tuple(map(step_of, page.items)), page.cursor)

    async def reach(self, rollout: RolloutId) -> Reach:
        """
        Say where a rollout's sandbox is and how to speak to it; raises RolloutUnknown, RolloutEnded, Masked.

        For files and trees. Before a first call the rollout may still be moved, and what was written is lost.
        """
        record = await self._store.rollouts.get(rollout.key)
        if record is None or (record.sandbox is None and record.verdict is None):
            raise RolloutUnknown(rollout=rollout.name)
        if record.verdict:
            raise refusal(record.verdict.word, record.verdict.cause)
        return self._routes.reach(rollout.key, cast("Sandbox", record.sandbox))

    async def health(self, run: RunId) -> Health:
        """Say whether the run's step is safe to train on; raises RunUnknown."""
        found, standpoint = await asyncio.gather(self._store.rollouts.run(run.key), self._store.standpoint())
        if found is None:
            raise RunUnknown(run=run.name)
        return judge_run(
            Figures(
                rollouts=found.rollouts,
                active=found.active,
                ended=found.ended,
                calls=found.calls,
                masked=found.verdicts.get(Word.MASKED, 0),
                trainable=found.verdicts.get(Word.TRAINABLE, 0),
                abandoned=found.verdicts.get(Word.ABANDONED, 0),
                causes=found.causes,
                store_live=standpoint.phase is Phase.LIVE,
            )
        )

    async def reserve(
        self, run: RunId, *, environment: str, reservation: str, count: int, ttl: timedelta, quota: int
    ) -> Reservation:
        """Reserve sandboxes ahead of a step; raises OverQuota."""
        return await self._store.reservations.reserve(
            run, environment=environment, reservation=reservation, count=count, ttl=ttl, quota=quota
        )

    async def _end(self, subject: Subject, word: Word, cause: Cause) -> Settled:
        settled = await self._store.rollouts.end(subject, Verdict(word, by=BY_TRAINER, cause=cause))
        if settled.first:
            self._witness.verdict_given(environment=subject.environment, word=word, cause=cause, calls=settled.calls)
        return settled


def _utc_now() -> datetime:
    return datetime.now(UTC)


@asynccontextmanager
async def open_use_cases(
    store: Store,
    signer: Signer,
    *,
    witness: Witness = SILENT,
    tracer: Tracer | None = None,
    patience: Patience | None = None,
    now: Callable[[], datetime] = _utc_now,
) -> AsyncIterator[UseCases]:
    """Lend the use cases; *now* is the clock that tokens are dated by, *tracer* follows each call."""
    patience = patience or Patience()
    line = Line(connect=patience.connect)
    routes = Routes(signer, now=now)
    toolservers = Toolservers(line, routes)
    backlog = Backlog(store=store, witness=witness)
    later = Later()
    try:
        async with plain_errors(), asyncio.TaskGroup() as tasks:
            running: set[asyncio.Task[None]] = set()

            def spawn(work: Coroutine[Any, Any, None]) -> None:
                try:
                    task = tasks.create_task(work)
                except RuntimeError:
                    # Closed meanwhile. What was not recorded is in the sandbox's journal.
                    work.close()
                    return
                running.add(task)
                task.add_done_callback(running.discard)

            spawn(backlog.write())
            calls_store = store
            if tracer:
                calls_store, toolservers = followed_parts(store, toolservers, tracer)
            acting = Acting(
                store=calls_store,
                routes=routes,
                beginning=Beginning(store=calls_store, routes=routes, backlog=backlog, witness=witness),
                sending=Sending(store=calls_store, toolservers=toolservers, witness=witness),
                closing=Closing(store=store, witness=witness),
                backlog=backlog,
                spawn=spawn,
                later=later,
                witness=witness,
                patience=patience,
            )
            if tracer:
                acting = followed_calls(acting, tracer)
            try:
                yield UseCases(store, acting, routes, witness)
            finally:
                later.now()
                await backlog.flush()
                for task in running:
                    task.cancel()
    finally:
        await line.close()
