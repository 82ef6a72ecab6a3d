"""
The record of a rollout's calls: begun when they are sent, finished before they are answered.

The mark that a call may have been delivered is what keeps it from ever running
twice. What a call means, and how arguments and results look, is for the
callers; here they are bytes.
"""

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import starmap
from types import MappingProxyType
from typing import Any, Final

from rollcage.core.ids import RolloutKey, trainers_id, word
from rollcage.core.values import value
from rollcage.store import link
from rollcage.store.glance import KEPT, Glance
from rollcage.store.link import Draft, Link, Step
from rollcage.store.records import Page, Sandbox, moment
from rollcage.store.refusals import granted
from rollcage.store.settings import Settings

# An answer stays below 1 MB on the wire; arguments may come in at that size.
MAX_PAYLOAD: Final = 4 << 20

# One page of a trajectory: what a reader can take at once.
_PAGE_BYTES: Final = 8 << 20


@value
class Call:
    """
    A call that is about to be sent.

    *attempt* is unique to whoever is about to send it, so that a lost answer
    can be asked for again without being taken for somebody else's attempt.
    """

    id: str
    hash: str
    attempt: str
    arguments: bytes = b""

    def __post_init__(self) -> None:
        trainers_id("call", self.id)
        trainers_id("hash", self.hash)
        trainers_id("attempt", self.attempt)
        _bounded(self.arguments)


class CallState(StrEnum):
    """What beginning a call found."""

    NEW = "new"  # ours to send
    RUNNING = "running"  # somebody else may have sent it: ask the sandbox, never send
    FINISHED = "finished"
    KEPT = "kept"  # ours, and begun together with its end


_STATES: Final = MappingProxyType({state.encode(): state for state in CallState})


@value
class Begun:
    """
    A call in the record, and what is known of its rollout.

    *sandbox* is where it goes, or None once the rollout has none. A verdict is
    told only of a call that was begun before it. Of one that was begun with its
    end only the number and the time are told.
    """

    state: CallState
    # How many calls the rollout had begun, this one included.
    number: int
    begun_at: datetime
    sandbox: Sandbox | None
    result: bytes | None
    verdict: str = ""
    cause: str = ""
    rollout_begun_at: datetime | None = None
    # The boot of the sandbox that answered the rollout's first call.
    boot: str = ""
    # Seconds that its claim stood in line; None if it did not have to.
    waited: float | None = None
    # It was to be moved to another sandbox and could not: another call may have run in this one.
    stays: bool = False

    @classmethod
    def read(cls, answer: list[Any]) -> "Begun":
        """Read the script's answer."""
        if answer[0] == KEPT:
            return cls(CallState.KEPT, int(answer[1]), moment(answer[2]), None, None)
        state, number, begun_at, card, result, verdict, cause, since, boot = answer
        return cls(
            state=_STATES[state],
            number=int(number),
            begun_at=moment(begun_at),
            sandbox=Sandbox.from_card(card) if card else None,
            result=result if state == b"finished" else None,
            verdict=verdict.decode(),
            cause=cause.decode(),
            rollout_begun_at=moment(since) if since else None,
            boot=boot.decode(),
        )


@value
class CallEnding:
    """
    What a call came to.

    *outcome* is the class it is counted under, *boot* the sandbox's boot that
    answered, *shown* how many characters the model sees of it.
    """

    result: bytes
    outcome: str
    boot: str = ""
    shown: int = 0

    def __post_init__(self) -> None:
        _bounded(self.result)
        word("outcome", self.outcome)

    @property
    def fields(self) -> dict[str, str | int | bytes]:
        """As the scripts take it, by name or in this order."""
        told: dict[str, str | int | bytes] = {"boot": self.boot} if self.boot else {}
        return {"result": self.result, "outcome": self.outcome, "shown": self.shown, **told}


@dataclass(frozen=True, slots=True)
class Finished:
    """
    What the record says after a call was finished.

    *result* is the first one kept, whoever brought it. A verdict that came in
    the meantime is told, since it may forbid giving the result away.
    """

    result: bytes
    first: bool
    verdict: str
    cause: str


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call of a trajectory; without a result it is still running or its result was lost."""

    number: int
    id: str
    hash: str
    attempt: str
    begun_at: datetime
    arguments: bytes
    result: bytes | None
    finished_at: datetime | None
    outcome: str | None


class Marking:
    """
    A call that is sent and will be begun: after a while, or with its end if that comes sooner.

    Only where its sandbox's journal keeps it from running twice: until then nobody but the sandbox knows of it.
    """

    def __init__(self, link: Link, step: Callable[[], Step], *, after: float) -> None:
        self._link = link
        self._make = step
        self._after = after
        self._loop = link.loop
        self._sent_at = self._looked_at = self._loop.time()
        self._step: Step | None = None
        self._glance: Glance | None = None
        self._draft: Draft | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._answer: asyncio.Future[list[Any]] | None = None
        # While the sandbox is at it, and nobody waits for us.
        self._soon = self._loop.call_soon(self._prepare)

    @property
    def under_way(self) -> bool:
        """Whether it is being begun, or was."""
        return self._answer is not None

    def now(self) -> None:
        """Begin it, unless it is begun already."""
        link.unattended(self._begun_with())

    def drop(self) -> None:
        """Never begin it: it was not sent."""
        self._soon.cancel()
        if self._timer:
            self._timer.cancel()
        if self._glance:
            self._glance.end()

    async def begun(self, ending: CallEnding | None, *, within: float) -> Begun:
        """
        Return what beginning it found; raise what it was refused with, or TimeoutError.

        If it was not begun before, *ending* is kept at the same time, if there is one.
        """
        if ending and (glance := self._glance):
            kept: asyncio.Future[bool] = self._loop.create_future()
            if self._kept(ending, partial(_settle, kept)) and await link.within(within, kept):
                return Begun.read(glance.answer)
        return Begun.read(granted(await link.within(within, link.unattended(self._begun_with(ending)))))

    def end(self, ending: CallEnding, *, within: float, then: Callable[[bool], None]) -> bool:
        """
        Begin it together with its end, unless it was begun before.

        *then* gets whether that is done *within* so many seconds; ``begun`` tells the rest.
        """
        if self._answer:
            return False
        told = _Told(then)
        if self._kept(ending, told):
            told.at_last(self._loop, within)
        else:
            link.told(within, self._begun_with(ending), lambda answer: then(_is_kept(answer)))
        return True

    def _prepare(self) -> None:
        """Do all that need not wait for its end."""
        self._step = self._make()
        self._looked_at = self._loop.time()
        self._glance = Glance(self._link, self._step, lasted=_milliseconds(self._looked_at - self._sent_at))
        if not self._glance.is_taken:
            self._draft = self._drafted()
        self._timer = self._loop.call_later(self._after, self.now)

    def _drafted(self) -> Draft:
        step = self._step or self._make()
        return self._link.draft(step.script, **step.fields)

    def _kept(self, ending: CallEnding, then: Callable[[bool], None]) -> bool:
        """Keep it without the script, if that can be; *then* gets whether it was, or it is left to the script."""
        if self._glance is None or self._answer:
            return False
        after = _milliseconds(self._loop.time() - self._looked_at)
        kept = self._glance.keep(ending.result, outcome=ending.outcome, shown=ending.shown, after=after, then=then)
        if kept:
            self.drop()
        return kept

    def _begun_with(self, ending: CallEnding | None = None) -> asyncio.Future[list[Any]]:
        if self._answer is None:
            self.drop()
            draft = self._draft or self._drafted()
            lasted = _milliseconds(self._loop.time() - self._sent_at)
            self._answer = draft.send(lasted, *(ending.fields.values() if ending else ()))
        return self._answer


class _Told:
    """Tells somebody, once, whether a call is kept: False if that is not known in time."""

    __slots__ = ("_late", "_then")

    def __init__(self, then: Callable[[bool], None]) -> None:
        self._then: Callable[[bool], None] | None = then
        self._late: asyncio.TimerHandle | None = None

    def __call__(self, kept: bool) -> None:  # noqa: FBT001 - what there is to tell
        """Tell it, unless it was told."""
        then, self._then = self._then, None
        if then:
            then(kept)
            if self._late:
                self._late.cancel()

    def at_last(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Tell that it is not known, unless it is by then."""
        if self._then:
            self._late = loop.call_later(seconds, self, False)  # noqa: FBT003 - as above


def _settle(answer: asyncio.Future[bool], kept: bool) -> None:  # noqa: FBT001 - as above
    if not answer.done():
        answer.set_result(kept)


def _is_kept(answer: asyncio.Future[list[Any]]) -> bool:
    return not answer.cancelled() and answer.exception() is None and answer.result()[:1] == [KEPT]


def _milliseconds(seconds: float) -> int:
    return int(seconds * 1000)


class Calls:
    """The calls of all rollouts."""

    def __init__(self, link: Link, settings: Settings) -> None:
        self._link = link
        self._settings = settings

    async def begin(self, rollout: RolloutKey, call: Call, *, sandbox: str | None = None) -> Begun:
        """
        Mark *call* as possibly delivered and say whether it is ours to send.

        With *sandbox*, only if the rollout is still in that one. The same call
        id with another hash is a conflict; a rollout that has its verdict
        begins no further calls, but still answers for those it began.
        """
        step = self.step(rollout, call, sandbox=sandbox)
        with self.unsent_if_cancelled(rollout, call):
            return Begun.read(await self._link.run(step.script, **step.fields))

    def mark(self, rollout: RolloutKey, call: Call, *, sandbox: str, after: float) -> Marking:
        """Begin *call*, which is sent now, *after* so many seconds or together with its end."""
        return Marking(self._link, partial(self.step, rollout, call, sandbox=sandbox), after=after)

    def step(self, rollout: RolloutKey, call: Call, *, sandbox: str | None = None) -> Step:
        """Return the beginning of a call as part of something larger."""
        fields: dict[str, str | int | bytes] = {
            "rollout": rollout,
            "call": call.id,
            "hash": call.hash,
            "attempt": call.attempt,
            "arguments": call.arguments,
            "max_calls": self._settings.max_calls,
            "max_bytes": self._settings.max_record_bytes,
        }
        if sandbox is not None:
            fields["sandbox"] = sandbox
        return Step("begin", fields)

    @contextmanager
    def unsent_if_cancelled(self, rollout: RolloutKey, call: Call) -> Iterator[None]:
        """Take the mark back if the caller goes away inside: it will not send what it was about to begin."""
        try:
            yield
        except asyncio.CancelledError:
            # If it gets lost the call counts as possibly delivered: safe, if a pity.
            self._link.post("retract", rollout=rollout, call=call.id, attempt=call.attempt)
            raise

    async def finish(self, rollout: RolloutKey, call: str, ending: CallEnding, *, within: float = math.inf) -> Finished:
        """Keep what a call came to, unless that is kept already; raises TimeoutError after *within* seconds."""
        answer = await self._link.run_within(within, "finish", rollout=rollout, call=call, **ending.fields)
        first = answer[0] == b"kept"
        return Finished(
            result=ending.result if first else answer[1],
            first=first,
            verdict=answer[2].decode(),
            cause=answer[3].decode(),
        )

    async def retract(self, rollout: RolloutKey, call: str, *, attempt: str) -> bool:
        """
        Take the mark back, knowing that nothing was sent; return whether it is gone.

        Only whoever made the mark can know, so another attempt's mark stands.
        """
        answer = await self._link.run("retract", rollout=rollout, call=call, attempt=attempt)
        return bool(answer[0] == b"retracted")

    async def trajectory(self, rollout: RolloutKey, *, cursor: str | None = None, limit: int = 100) -> Page[CallRecord]:
        """Return calls in the order in which they began."""
        start = int(cursor or 0)
        length, records = await self._link.run(
            "trajectory", rollout=rollout, start=start, limit=limit, max_bytes=_PAGE_BYTES
        )
        end = start + len(records)
        return Page(tuple(starmap(_record, enumerate(records, start + 1))), str(end) if end < length else None)


def _record(number: int, fields: tuple[bytes, bytes, bytes | None]) -> CallRecord:
    mark, arguments, result = fields
    name, digest, attempt, begun_at, *ending = mark.split(b" ")
    return CallRecord(
        number=number,
        id=name.decode(),
        hash=digest.decode(),
        attempt=attempt.decode(),
        begun_at=moment(begun_at),
        arguments=arguments,
        result=result,
        finished_at=moment(ending[0]) if ending else None,
        outcome=ending[1].decode() if ending else None,
    )


def _bounded(payload: bytes) -> None:
    if len(payload) > MAX_PAYLOAD:
        raise ValueError(f"{len(payload)} bytes, at most {MAX_PAYLOAD} are recorded")
