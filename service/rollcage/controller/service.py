"""
Stand by, lead, and stand by again.

One leader at a time does the work; everything it knew is forgotten when it
stops, and seen anew by the next.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import structlog

from rollcage.controller.keeper import Keeper
from rollcage.controller.leading import Leadership, Lease, leading
from rollcage.core.errors import NotLeader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from rollcage.controller.greeting import Greeter
    from rollcage.controller.settings import Settings
    from rollcage.sandboxes.recipes import Recipes
    from rollcage.sandboxes.source import SandboxSource
    from rollcage.store.store import Store
    from rollcage.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)


async def serve(
    *,
    source: SandboxSource,
    recipes: Recipes,
    store: Store,
    greeter: Greeter,
    metrics: Metrics,
    election: Callable[[], AbstractAsyncContextManager[Leadership]],
    settings: Settings | None = None,
) -> None:
    """Lead whenever elected, until cancelled."""
    while True:
        try:
            async with election() as leadership:
                keeper = Keeper(
                    source=source,
                    recipes=recipes,
                    store=store,
                    leader=store.as_leader(leadership.epoch),
                    greeter=greeter,
                    metrics=metrics,
                    settings=settings,
                    leading=leadership.holds,
                )
                metrics.leader.at().set(1)
                await keeper.run()
        except* NotLeader as lost:
            log.warning("leadership_lost", error=str(lost.exceptions[0]))
        finally:
            metrics.leader.at().set(0)
            # What the pools were is now for the next leader to say.
            for gauge in (metrics.pool, metrics.queue_length):
                gauge.meter.clear()


def by_lease(lease: Lease) -> Callable[[], AbstractAsyncContextManager[Leadership]]:
    """Be elected by a lease: any number of replicas."""
    return lambda: leading(lease)


def alone(store: Store) -> Callable[[], AbstractAsyncContextManager[Leadership]]:
    """Be the only one, as on a laptop; a leader that was before is deposed."""

    @asynccontextmanager
    async def election() -> AsyncIterator[Leadership]:
        yield Leadership((await store.standpoint()).leader + 1, lapses=False)

    return election
