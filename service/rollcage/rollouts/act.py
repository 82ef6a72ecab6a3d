"""
Act: run one call of a rollout in its sandbox, at most once, and answer with what came of it.

Find its place, mark and send it, judge what came of it, record the result, answer.
What a happening means is decided in ``core.verdicts``; this is the order of things.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from rollcage.core.errors import (
    CallConflict,
    CallUnknown,
    RecordFull,
    RollcageError,
    RolloutEnded,
    RolloutMoved,
    RolloutUnknown,
    StoreRecovering,
    StoreUnavailable,
)
from rollcage.core.verdict_facts import Came
from rollcage.core.verdict_words import Cause, Judgement, Ruling, Word
from rollcage.core.verdicts import judge
from rollcage.rollouts import texts
from rollcage.rollouts.actions import Action, Answer, Outcome, Prepared, prepare, recorded, told
from rollcage.rollouts.backlog import Backlog, Unrecorded
from rollcage.rollouts.beginning import Beginning, Place
from rollcage.rollouts.closing import Closing, as_cause
from rollcage.rollouts.errors import Masked, NoSandbox, StillRunning
from rollcage.rollouts.isolation import Isolation
from rollcage.rollouts.job import Job
from rollcage.rollouts.later import Later
from rollcage.rollouts.patience import Patience
from rollcage.rollouts.plainly import Asker, PlainCall
from rollcage.rollouts.reading import answer_to, facts_of, known, over_budget
from rollcage.rollouts.routes import Route, Routes
from rollcage.rollouts.sending import Sending
from rollcage.rollouts.toolservers import Heard
from rollcage.rollouts.witness import Witness
from rollcage.store.calls import CallState, Marking
from rollcage.store.store import Store

_RETRY_AFTER: Final = 1.0

# Nothing ran, so the mark can be taken back.
_NOTHING_RAN: Final = frozenset(
    {
        Came.NOT_SENT,
        Came.MISROUTED,
        Came.KEY_REFUSED,
        Came.NOT_READY,
        Came.STOPPING,
        Came.RESTARTED,
        Came.CONFLICT,
        Came.SEALED,
    }
)


class Acting:
    """The calls of all rollouts."""

    def __init__(
        self,
        *,
        store: Store,
        routes: Routes,
        beginning: Beginning,
        sending: Sending,
        closing: Closing,
        backlog: Backlog,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        later: Later,
        witness: Witness,
        patience: Patience,
    ) -> None:
        self._store = store
        self._routes = routes
        self._beginning = beginning
        self._sending = sending
        self._closing = closing
        self._backlog = backlog
        self._spawn = spawn
        self._later = later
        self._witness = witness
        self._patience = patience
        self._clock = asyncio.get_running_loop().time
        self._isolation = Isolation()

    async def act(self, action: Action) -> Answer:
        """
        Run a call and answer with what the model sees.

        Raises only what ``errors`` and ``core`` name. A caller that goes away
        leaves a call that runs on, and whose result is recorded all the same.
        """
        return await self.onward(self._job(prepare(action)))

    def start(self, action: Action, asker: Asker) -> None:
        """Run a call likewise; *asker* hears what comes of it, now or later."""
        try:
            job = self._job(prepare(action))
            plain = self._posted(job, asker)
        except Exception:  # noqa: BLE001 - nothing was sent; it will be raised again on the usual course, where it is told
            asker.otherwise(self.act(action))
            return
        if plain:
            plain.marking = self._beginning.mark(job, plain.route)
        else:
            asker.otherwise(self.onward(job))

    def _job(self, prepared: Prepared) -> Job:
        return Job(prepared, self._patience, self._clock, self._clock())

    def _posted(self, job: Job, asker: Asker) -> PlainCall | None:
        """Send a call for which nothing has to be waited for; None if something has."""
        route = self._beginning.at_once(job)
        plain = PlainCall(self, job, route, asker) if route else None
        return plain if plain and self._sending.post(job, plain.route, plain.take) else None

    async def onward(self, job: Job, place: Place | None = None) -> Answer:
        """Bring a call to its end, from *place* on if it has got there."""
        action = job.action
        try:
            answer = await self._answered(job, place)
        except (CallConflict, RolloutEnded):
            # Whoever called should not have.
            raise
        except Exception as error:
            self._witness.call_failed(
                environment=action.environment.name, tool=action.tool, seconds=job.lasted, why=_why(error)
            )
            raise
        self.counted(job, answer)
        return answer

    def counted(self, job: Job, answer: Answer) -> None:
        """Count a call that was answered."""
        self._later.do(self._count, job.action, answer, job.lasted)

    def _count(self, action: Action, answer: Answer, seconds: float) -> None:
        self._witness.call_answered(
            environment=action.environment.name,
            tool=action.tool,
            outcome=answer.outcome,
            seconds=seconds,
            replayed=answer.replayed,
            output_bytes=len(answer.output.encode(errors="replace")),
            truncated=answer.truncated,
        )

    async def _answered(self, job: Job, place: Place | None) -> Answer:
        try:
            while True:
                place = place or await self._beginning.begin(job)
                answer = known(place.begun) or await self._tried(job, place)
                if answer:
                    return answer
                job.tried, place = True, None
        except RolloutEnded as over:
            return await self._closing.late(job, over.verdict, over.cause)
        except RecordFull:
            return told(job.action, texts.RECORD_FULL, Outcome.REFUSED)

    async def _tried(self, job: Job, place: Place) -> Answer | None:
        """Send the call, or follow one that somebody sent; None if it is to be tried again."""
        route, begun = place.route, place.begun
        if place.marking:
            return await self._sent_at_once(job, route, place.marking, place.heard)
        marked_elsewhere = begun is not None and begun.state is CallState.RUNNING
        if marked_elsewhere and not route.boot:
            # Only a sandbox that is known to be the same is sure to know the call again.
            heard = await self._sending.follow(job, route)
        elif begun and not marked_elsewhere and (text := over_budget(job.action, begun)):
            return await self._recorded(job, route, told(job.action, text, Outcome.REFUSED))
        else:
            heard = await self._sent(job, route)
        return await self._judged(job, route, heard)

    async def _sent_at_once(self, job: Job, route: Route, marking: Marking, heard: Heard | None) -> Answer | None:
        """Send a call that is marked later; what the record says of it counts before what its sandbox says."""
        try:
            heard = await self._sent(job, route, heard)
        except asyncio.CancelledError:
            if job.sendings:
                marking.now()
            else:
                marking.drop()
            raise
        answer = self.plain(job, route, heard)
        try:
            begun = await self._beginning.marked(job, marking, answer.ending(route.boot) if answer else None)
        except asyncio.CancelledError:
            self._spawn(self._afterwards(job, route))
            raise
        except (RolloutMoved, RolloutUnknown):
            self._routes.forget(route)
            if heard.came in _NOTHING_RAN:
                return None
            # It ran where the record does not have its rollout.
            return await self._closing.mask(job, route, heard, Cause.AMBIGUOUS_OWNER)
        if before := known(begun):
            return before
        if begun and heard.came is Came.FULL and (text := over_budget(job.action, begun)):
            return await self._recorded(job, route, told(job.action, text, Outcome.REFUSED))
        if answer is None:
            return await self._judged(job, route, heard)
        return answer if begun and begun.state is CallState.KEPT else await self._recorded(job, route, answer)

    def plain(self, job: Job, route: Route, heard: Heard) -> Answer | None:
        """Return what the model is told of a call that simply came to a result."""
        if heard.came is not Came.RESULT or self._judgement(job, route, heard).ruling is not Ruling.RESULT:
            return None
        self._isolation.reached()
        return answer_to(job, heard)

    def _judgement(self, job: Job, route: Route, heard: Heard) -> Judgement:
        return judge(facts_of(job, route, heard, alone=self._isolation.suspected))

    async def _judged(self, job: Job, route: Route, heard: Heard) -> Answer | None:
        judgement = self._judgement(job, route, heard)
        match judgement.ruling:
            case Ruling.RESULT:
                return await self._recorded(job, route, answer_to(job, heard))
            case Ruling.AGAIN:
                await self._again(job, route, heard)
                return None
            case Ruling.MASKED:
                return await self._masked(job, route, heard, judgement)
            case _:
                raise await self._refusal(job, route, heard)

    async def _sent(self, job: Job, route: Route, heard: Heard | None = None) -> Heard:
        try:
            heard = await self._sending.send(job, route, heard)
        except asyncio.CancelledError:
            if job.sendings:
                self._spawn(self._afterwards(job, route))
            raise
        if heard.came is Came.NOT_SENT:
            self._isolation.unreached(route.sandbox.name)
        else:
            self._isolation.reached()
        if heard.came not in _NOTHING_RAN:
            route.delivered = True
        if heard.came is Came.MISROUTED:
            self._witness.misroute_refused(environment=job.action.environment.name)
        return heard

    async def _afterwards(self, job: Job, route: Route) -> None:
        """Record what came of a call whose caller went away."""
        longest = timedelta(seconds=job.action.environment.spec.limits.max_timeout_seconds) + self._patience.word
        left = self._job(replace(job.prepared, action=replace(job.action, within=longest)))
        left.marked, left.bypassed = job.marked, job.bypassed
        with contextlib.suppress(RollcageError):
            heard = await self._sending.follow(left, route)
            if heard.came is Came.RESULT:
                await self._recorded(left, route, answer_to(left, heard))

    async def _recorded(self, job: Job, route: Route, answer: Answer) -> Answer:
        """Record what the model will see, then let it go."""
        if job.bypassed:
            return self._recorded_later(job, route, answer)
        try:
            finished = await self._store.calls.finish(
                job.prepared.key,
                job.call.id,
                answer.ending(route.boot),
                within=self._patience.store.total_seconds(),
            )
        except (StoreUnavailable, StoreRecovering, CallUnknown, TimeoutError):
            # Redis went away, or lost its memory, while the call ran.
            self._beginning.store_is_away()
            return self._recorded_later(job, route, answer)
        if finished.verdict == Word.MASKED:
            raise Masked(cause=as_cause(finished.cause))
        return answer if finished.first else recorded(finished.result, replayed=True)

    def _recorded_later(self, job: Job, route: Route, answer: Answer) -> Answer:
        self._backlog.add(Unrecorded(job.prepared.key, job.action.environment.name, job.call, answer, route.boot))
        return answer

    async def _again(self, job: Job, route: Route, heard: Heard) -> None:
        if heard.came is Came.BUSY and not job.bypassed:
            with self._store.calls.unsent_if_cancelled(job.prepared.key, job.call):
                await job.rest()
            return
        if heard.came in _NOTHING_RAN:
            await self._retract(job)
            if not route.delivered:
                # Wanted each time: a call that may have run there may turn out not to have been sent either.
                job.instead_of = route.sandbox.name
                if not job.delivered:
                    job.placements += 1
                    self._routes.forget(route)
                    self._witness.rollout_moved(environment=job.action.environment.name)
                    return
        if heard.came is Came.MISROUTED:
            self._routes.forget(route)
        await job.rest()

    async def _masked(self, job: Job, route: Route, heard: Heard, judgement: Judgement) -> Answer:
        if heard.came is Came.RESULT:
            # It has a result, which nobody may see; the record keeps it as evidence.
            await self._recorded(job, route, answer_to(job, heard))
        self._routes.forget(route)
        return await self._closing.mask(job, route, heard, judgement.cause or Cause.UNKNOWN)

    async def _refusal(self, job: Job, route: Route, heard: Heard) -> RollcageError:
        if heard.came is Came.RUNNING:
            return StillRunning(call=job.call.id, retry_after=_RETRY_AFTER)
        await self._retract(job)
        if heard.came is Came.CONFLICT:
            return CallConflict(rollout=job.prepared.key, call=job.call.id)
        if heard.came is Came.SEALED:
            return await self._closing.sealed(job)
        self._routes.forget(route)
        return NoSandbox(environment=job.action.environment.name, retry_after=_RETRY_AFTER)

    async def _retract(self, job: Job) -> None:
        if job.marked:
            await self._store.calls.retract(job.prepared.key, job.call.id, attempt=job.call.attempt)
            job.marked = False


def _why(error: Exception) -> Cause | str:
    return error.cause if isinstance(error, Masked) else getattr(error, "code", "")
