"""
Send a call to its sandbox and find out what came of it.

A call whose answer is lost is never simply sent again: its sandbox is asked for
it by its id, for as long as the caller has time. Only a sandbox of the same boot
that says itself that the call never arrived gets it again, and runs it once
whatever is still under way, since its journal knows the id.
"""

from typing import Final

from rollcage.core.errors import RollcageError, StoreRecovering, StoreUnavailable
from rollcage.core.verdict_facts import Came
from rollcage.rollouts.connection import Connection, Then
from rollcage.rollouts.job import Job
from rollcage.rollouts.routes import Route
from rollcage.rollouts.toolservers import NOT_SENT, Heard, Toolservers
from rollcage.rollouts.witness import Witness
from rollcage.store.calls import Begun, CallState
from rollcage.store.store import Store

# How long a sandbox is asked to wait for a call that runs, so that the record is looked at now and then.
_LONG_POLL: Final = 10.0

_OUT_OF_REACH: Final = frozenset({Came.NOT_SENT, Came.ANSWER_LOST})


class Sending:
    """The way to the sandboxes."""

    def __init__(self, *, store: Store, toolservers: Toolservers, witness: Witness) -> None:
        self._store = store
        self._toolservers = toolservers
        self._witness = witness

    async def send(self, job: Job, route: Route, heard: Heard | None = None) -> Heard:
        """
        Send a call that is marked, or that its sandbox's journal guards; return what came of it.

        *heard* is what is known of one that was sent already.
        """
        if heard is None:
            connection = self._toolservers.kept(route) or await self._reached(job, route)
            if connection is None:
                return NOT_SENT
            job.sendings += 1
            heard = await self._toolservers.call(
                route, connection, job.prepared.body, most=job.most, seconds=max(job.left, 0.0)
            )
        if heard.came is not Came.ANSWER_LOST:
            return heard
        self._witness.answer_lost(environment=job.action.environment.name)
        return await self.follow(job, route)

    def post(self, job: Job, route: Route, then: Then) -> bool:
        """Send such a call if a connection is open: *then* gets what ``toolservers.heard`` reads; else return False."""
        connection = self._toolservers.kept(route)
        if connection is None:
            return False
        self._toolservers.post(
            route, connection, job.prepared.body, most=job.most, seconds=max(job.left, 0.0), then=then
        )
        job.sendings += 1
        return True

    async def _reached(self, job: Job, route: Route) -> Connection | None:
        if job.bypassed:
            return await self._toolservers.reach(route)
        with self._store.calls.unsent_if_cancelled(job.prepared.key, job.call):
            return await self._toolservers.reach(route)

    async def follow(self, job: Job, route: Route) -> Heard:
        """Ask the sandbox what came of a call that may have been delivered, until there is no more time."""
        unheard_since: float | None = None
        while True:
            heard = await self._toolservers.earlier(route, job.call.id, wait=min(max(job.left, 0.0), _LONG_POLL))
            over = False
            if heard.came in _OUT_OF_REACH:
                over = job.troubled() >= job.patience.word.total_seconds()
            elif heard.came is Came.UNHEARD:
                if job.marked and route.boot and heard.boot == route.boot:
                    return heard
                unheard_since = unheard_since or job.lasted
                over = job.lasted - unheard_since >= job.patience.unheard.total_seconds()
            elif heard.came is not Came.RUNNING:
                return heard
            else:
                job.trouble_since = None
            if told := await self._told(job):
                return told
            if over or job.left <= 0:
                return heard if heard.came not in _OUT_OF_REACH else Heard(Came.ANSWER_LOST)
            if heard.came is not Came.RUNNING:
                await job.rest()

    async def _told(self, job: Job) -> Heard | None:
        """Look whether somebody else knows: another gateway the result, the controller a verdict."""
        try:
            begun = await self._store.calls.begin(job.prepared.key, job.call)
        except (StoreUnavailable, StoreRecovering):
            return None
        except RollcageError:
            # The record has no such call, or its rollout is over.
            return None if job.bypassed else Heard(Came.ANSWER_LOST)
        if begun.state is CallState.NEW and not (job.marked or job.bypassed):
            # Whoever had marked it took the mark back, and now it is ours.
            job.marked = True
            return Heard(Came.TAKEN_BACK)
        return told(begun)


def told(begun: Begun) -> Heard | None:
    """Return what the record says of a call, or None if it says nothing yet."""
    if begun.state is CallState.FINISHED and begun.result is not None:
        return Heard(Came.RESULT, begun.result, replayed=True)
    return Heard(Came.ANSWER_LOST) if begun.verdict else None
