"""
Find a call its sandbox and mark it there.

A rollout's first call is marked before it is sent, in one round trip with the
claim: from then on the rollout stays where it is. A later one, of a rollout
whose sandbox this gateway knows, is sent at once, and marked when it takes
longer, or with its result: whatever becomes of the mark, only that sandbox can
get the call, and its journal runs it once. While Redis is away, such rollouts
go on in the same way.
"""

import asyncio
from datetime import timedelta
from typing import Final

from rollcage.core.errors import (
    ClaimTimedOut,
    RolloutMoved,
    RolloutUnknown,
    StoreRecovering,
    StoreUnavailable,
)
from rollcage.core.values import value
from rollcage.rollouts.backlog import Backlog, Unsent
from rollcage.rollouts.job import Job
from rollcage.rollouts.routes import Route, Routes
from rollcage.rollouts.toolservers import Heard
from rollcage.rollouts.witness import Witness
from rollcage.store.calls import Begun, CallEnding, CallState, Marking
from rollcage.store.claims import Claim
from rollcage.store.store import Store

# After Redis did not answer, calls of running rollouts do not wait for it for so many seconds.
_BREATHER: Final = 1.0

# A call that takes longer is marked while it runs, so that others see it; a shorter one with its result, in one
# round trip.
_MARKED_AFTER: Final = 0.02

# So long before its time is up a rollout's calls wait for their mark, which tells exactly.
_ALMOST_OVER: Final = 2.0


@value
class Place:
    """Where a call goes, and what the record says of it: nothing if it is yet to be marked, or if Redis is away."""

    route: Route
    begun: Begun | None = None
    marking: Marking | None = None
    # What came of it, if it was sent already.
    heard: Heard | None = None


class Beginning:
    """The way from a call to its sandbox."""

    def __init__(self, *, store: Store, routes: Routes, backlog: Backlog, witness: Witness) -> None:
        self._store = store
        self._routes = routes
        self._backlog = backlog
        self._witness = witness
        self._clock = asyncio.get_running_loop().time
        self._away_until = 0.0

    def at_once(self, job: Job) -> Route | None:
        """Return where a call may be sent before it is marked, or None."""
        route = self._routes.get(job.prepared.key)
        if (
            not (route and self._may_bypass(route))
            or self._store_is_away
            or not _may_be_sent_at_once(job, route, now=self._clock())
        ):
            return None
        return route

    def mark(self, job: Job, route: Route) -> Marking:
        """Mark a call that is sent there now: when it has taken long enough, or with its end."""
        # Ours, as long as nobody says otherwise.
        job.marked, job.bypassed = True, False
        return self._store.calls.mark(job.prepared.key, job.call, sandbox=route.sandbox.name, after=_MARKED_AFTER)

    async def begin(self, job: Job) -> Place:
        """Return the call's place; whatever the store refuses with is raised."""
        if route := self.at_once(job):
            return Place(route, marking=self.mark(job, route))
        route = self._routes.get(job.prepared.key)
        may_bypass = route is not None and self._may_bypass(route)
        if route and may_bypass and self._store_is_away:
            return self._bypass(job, route)
        try:
            # Who gives up waiting takes its mark back; the sandbox's journal guards the call instead.
            async with asyncio.timeout(job.patience.store.total_seconds() if may_bypass else None):
                begun = await self._begun(job, route)
        except (StoreUnavailable, StoreRecovering, TimeoutError) as away:
            self.store_is_away()
            if route and may_bypass and self._routes.get(job.prepared.key) is route:
                return self._bypass(job, route)
            if isinstance(away, StoreRecovering):
                raise
            # It may have been marked all the same.
            self._backlog.add(Unsent(job.prepared.key, job.action.environment.name, job.call))
            raise StoreUnavailable("Redis does not answer") from away
        return self._place(job, begun)

    async def marked(self, job: Job, marking: Marking, ending: CallEnding | None) -> Begun | None:
        """
        Return what the record says of a call that was sent before it was marked; None if Redis is away.

        It may have come to its *ending*. Whatever else the store refuses with is raised.
        """
        try:
            begun = await marking.begun(ending, within=job.patience.store.total_seconds())
        except (StoreUnavailable, StoreRecovering, TimeoutError):
            self.store_is_away()
            self._bypassed(job)
            return None
        job.marked = begun.state is CallState.NEW
        return begun

    def store_is_away(self) -> None:
        """Note that Redis did not answer."""
        self._away_until = self._clock() + _BREATHER

    @property
    def _store_is_away(self) -> bool:
        # What waits to be recorded is tried all the time: while it waits, nobody else need try.
        return bool(self._backlog) or self._clock() < self._away_until

    def _may_bypass(self, route: Route) -> bool:
        # Only where this gateway knows the boot: a sandbox of that boot runs no call twice.
        return bool(route.boot) and self._backlog.has_room

    async def _begun(self, job: Job, route: Route | None) -> Begun:
        if route and not job.instead_of:
            try:
                return await self._store.calls.begin(job.prepared.key, job.call, sandbox=route.sandbox.name)
            except (RolloutMoved, RolloutUnknown):
                self._routes.forget(route)
        return await self._claimed(job)

    async def _claimed(self, job: Job) -> Begun:
        claim = Claim(
            job.subject,
            wait=timedelta(seconds=max(job.left, 0.0)),
            max_waiting=job.action.max_waiting,
            instead_of=job.instead_of,
        )
        job.instead_of = None
        try:
            begun = await self._store.claims.start(claim, job.call)
        except ClaimTimedOut as late:
            self._witness.waited_in_line(environment=late.environment, seconds=late.waited)
            raise
        # For now: that other call may turn out not to have been sent either.
        job.delivered = begun.stays
        if begun.state is CallState.NEW and not begun.stays and (begun.number == 1 or job.placements):
            self._witness.sandbox_claimed(environment=job.action.environment.name, seconds=job.lasted)
            if begun.waited is not None:
                self._witness.waited_in_line(environment=job.action.environment.name, seconds=begun.waited)
        return begun

    def _place(self, job: Job, begun: Begun) -> Place:
        job.marked, job.bypassed = begun.state is CallState.NEW, False
        if begun.sandbox is None:
            # Only a rollout that is over has calls and no sandbox; the record tells the rest.
            raise RolloutMoved(thought="", sandbox="")
        route = self._routes.found(job.prepared.key, begun.sandbox, begun.boot)
        if begun.rollout_begun_at:
            # How long ago, by Redis's clock alone.
            passed = (begun.begun_at - begun.rollout_begun_at).total_seconds()
            route.began = self._clock() - passed
        return Place(route, begun)

    def _bypass(self, job: Job, route: Route) -> Place:
        self._bypassed(job)
        return Place(route)

    def _bypassed(self, job: Job) -> None:
        job.marked, job.bypassed = False, True
        self._witness.store_bypassed(environment=job.action.environment.name)


def _may_be_sent_at_once(job: Job, route: Route, *, now: float) -> bool:
    """
    Tell whether a call may be sent before its mark has come to anything.

    Only where a call has been before, so that the rollout cannot be moved
    any more, and at the first try. The sandbox itself counts calls.
    """
    if job.tried or route.began is None or not route.delivered:
        return False
    return now - route.began < job.action.environment.spec.budgets.wall_seconds - _ALMOST_OVER
