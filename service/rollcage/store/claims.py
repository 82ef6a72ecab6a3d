"""
Get a rollout its sandbox: the one it has, a ready one, or the next one in turn.

The scripts decide who gets what; here a caller waits, keeps its place in line,
and gives it up when it goes away.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, TypeAlias, TypeVar

from rollcage.core.errors import (
    ClaimTimedOut,
    MayHaveRun,
    RollcageError,
    RolloutMoved,
    RolloutUnknown,
    StoreRecovering,
    StoreUnavailable,
)
from rollcage.store.calls import Begun, Call, Calls
from rollcage.store.link import Link, Step, Value
from rollcage.store.records import Sandbox, Subject
from rollcage.store.settings import Settings
from rollcage.store.wakes import Wakes

T = TypeVar("T")

# Asks once, willing to wait so many seconds in line; None means: in line.
Ask: TypeAlias = Callable[[float], Awaitable[T | None]]

# A first look again soon: most messages that get lost are lost around a reconnection.
_FIRST_REASK: Final = 0.5

# Whoever was turned away by the deadline may come back at once: its place is kept.
_RETRY_AFTER: Final = 1.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A rollout's wish for a sandbox, and how long it may wait in how long a line."""

    subject: Subject
    wait: timedelta
    max_waiting: int
    # A sandbox found dead before anything was sent to it: the rollout wants another one.
    instead_of: str | None = None


class Claims:
    """The gateway's side of the pools."""

    def __init__(
        self,
        link: Link,
        *,
        wakes: Wakes,
        calls: Calls,
        settings: Settings,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._link = link
        self._wakes = wakes
        self._calls = calls
        self._heartbeat = settings.heartbeat.total_seconds()
        self._reask = settings.reask.total_seconds()
        self._jitter = jitter

    async def claim(self, claim: Claim) -> Sandbox:
        """
        Return the rollout's sandbox, waiting for one if need be.

        Any number of callers may claim for the same rollout; all get the same
        answer. A caller that is cancelled leaves the line. A sandbox that was
        bound all the same stays the rollout's, for whoever asks next.
        """

        async def ask(wait: float) -> Sandbox | None:
            return _bound(await self._link.run("claim", **self._fields(claim, wait)))

        return await self._until_answered(claim, ask)

    async def start(self, claim: Claim, call: Call) -> Begun:
        """
        Claim and begin the rollout's first call, in one round trip if a sandbox is ready.

        A call that was begun before is answered from the record, also when the
        rollout has ended since. One that wants another sandbox, where a call
        may have run in this one, is begun where it is and told that it *stays*.
        """
        clock = asyncio.get_running_loop().time
        in_line_since: float | None = None

        async def ask(wait: float) -> Begun | None:
            nonlocal in_line_since
            claimed, marked = await self._link.together(
                Step("claim", self._fields(claim, wait)), self._calls.step(claim.subject.key, call)
            )
            stays = isinstance(claimed, MayHaveRun)
            if isinstance(marked, list):
                begun = Begun.read(marked)
                return replace(begun, stays=True) if stays else begun
            if stays:
                raise marked
            if isinstance(claimed, RollcageError):
                raise claimed
            if _bound(claimed) is None:
                in_line_since = in_line_since or clock()
                return None
            if isinstance(marked, RolloutMoved | RolloutUnknown):
                # Begun before it was bound: the server had forgotten the one script and not the other.
                return await self._calls.begin(claim.subject.key, call)
            raise marked

        with self._calls.unsent_if_cancelled(claim.subject.key, call):
            begun = await self._until_answered(claim, ask)
        return begun if in_line_since is None else replace(begun, waited=clock() - in_line_since)

    async def _until_answered(self, claim: Claim, ask: Ask[T]) -> T:
        key = claim.subject.key
        with self._wakes.waiting(key) as woken:
            try:
                answer = await self._wait(claim, ask, woken)
            except asyncio.CancelledError:
                # Others in this process may wait for the same rollout and need the place.
                # If this gets lost the place lapses, since nobody is heard of any more.
                if self._wakes.count(key) == 1:
                    self._link.post("leave", rollout=key)
                raise
        if answer is None:
            raise ClaimTimedOut(
                environment=claim.subject.environment,
                waited=claim.wait.total_seconds(),
                retry_after=_RETRY_AFTER,
            )
        return answer

    async def _wait(self, claim: Claim, ask: Ask[T], woken: asyncio.Event) -> T | None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + claim.wait.total_seconds()
        answer = await ask(claim.wait.total_seconds())
        pause = _FIRST_REASK
        while answer is None and (left := deadline - clock()) > 0:
            await _woken_within(woken, min(pause * (0.75 + self._jitter() / 2), left))
            woken.clear()
            pause = min(pause * 2, self._reask)
            try:
                answer = await ask(max(deadline - clock(), 0.0))
            except (StoreUnavailable, StoreRecovering):
                # Whoever stands in line sits an outage out: the place may be lost, the ticket is not.
                if clock() >= deadline:
                    raise
        if answer is None and claim.wait > timedelta():
            left_with = await self._link.run("leave", rollout=claim.subject.key)
            # Bound at the last moment: then it is ours after all.
            answer = await ask(0.0) if _bound(left_with) else None
        return answer

    def _fields(self, claim: Claim, wait: float) -> dict[str, Value]:
        fields = claim.subject.fields()
        fields["wait"] = int(min(wait, self._heartbeat) * 1000)
        fields["max_waiting"] = claim.max_waiting
        if claim.instead_of:
            fields["instead_of"] = claim.instead_of
        return fields


def _bound(answer: list[Any]) -> Sandbox | None:
    return Sandbox.from_card(answer[2]) if answer[0] == b"bound" else None


async def _woken_within(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await woken.wait()
    except TimeoutError:
        return
