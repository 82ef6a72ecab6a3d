"""
The store as its users hold it: open it, and find everything under its name.

Nothing is decided here; the parts are put together.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass

from redis.asyncio import Redis

from rollcage.store.archives import Archives
from rollcage.store.calls import Calls
from rollcage.store.claims import Claims
from rollcage.store.environments import Environments, LeadersEnvironments
from rollcage.store.link import Clock, Link, connect
from rollcage.store.pools import LeadersPools, Pools
from rollcage.store.recovery import Recovery, Standpoint, guard, standpoint
from rollcage.store.reservations import Reservations
from rollcage.store.rollouts import Rollouts
from rollcage.store.scores import Scores
from rollcage.store.settings import Settings
from rollcage.store.wakes import Wakes, messages


@dataclass(frozen=True, slots=True)
class Leader:
    """What the leading controller may do; refused as soon as another one has led."""

    epoch: int
    pools: LeadersPools
    environments: LeadersEnvironments
    recovery: Recovery


@dataclass(frozen=True, slots=True)
class Store:
    """Everything that survives a process."""

    claims: Claims
    calls: Calls
    rollouts: Rollouts
    scores: Scores
    archives: Archives
    reservations: Reservations
    pools: Pools
    environments: Environments
    _link: Link
    _client: Redis

    def as_leader(self, epoch: int) -> Leader:
        """Act as the leader of *epoch*, a number that rises with every election."""
        return Leader(
            epoch,
            LeadersPools(self._link, epoch=epoch),
            LeadersEnvironments(self._link, epoch=epoch),
            Recovery(self._link, epoch=epoch),
        )

    async def standpoint(self) -> Standpoint:
        """Say whether new claims are served, and since which loss of memory."""
        return await standpoint(self._link)

    async def certificate_expires(self) -> float:
        """Return when Redis can no longer be trusted by what it shows now, in seconds since 1970; 0 without TLS."""
        return await self._link.certificate_expires()

    def changes(self) -> AsyncGenerator[str, None]:
        """
        Yield the environments whose demand or whose spent sandboxes changed, for ever.

        EVERYBODY stands for all of them: it comes first, and whenever messages may have been missed.
        """
        return messages(self._client, self._link.keys("changes"))


@asynccontextmanager
async def open_store(settings: Settings, *, clock: Clock | None = None) -> AsyncIterator[Store]:
    """
    Connect, check that the data is of our release, and listen for messages.

    *clock* (milliseconds) replaces the server's own time, for tests.
    """
    client = connect(settings)
    try:
        async with plain_errors(), asyncio.TaskGroup() as tasks, AsyncExitStack() as resources:
            link = resources.enter_context(closing(Link(client, settings=settings, tasks=tasks, clock=clock)))
            await guard(link)
            await link.teach()
            wakes, subscribed = Wakes(), asyncio.Event()
            listener = tasks.create_task(wakes.listen(client, link.keys("wake"), subscribed))
            await subscribed.wait()
            calls = Calls(link, settings)
            try:
                yield Store(
                    claims=Claims(link, wakes=wakes, calls=calls, settings=settings),
                    calls=calls,
                    rollouts=Rollouts(link),
                    scores=Scores(link),
                    archives=Archives(link),
                    reservations=Reservations(link),
                    pools=Pools(link),
                    environments=Environments(link, client),
                    _link=link,
                    _client=client,
                )
            finally:
                listener.cancel()
    finally:
        await client.aclose()


@asynccontextmanager
async def plain_errors() -> AsyncIterator[None]:
    """Let an error out of a task group as it is."""
    # A task group wraps what is raised inside it; whoever opens the store should see its own error.
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        raise group.exceptions[0] from None
