"""
Look now and then whether Redis answers this process, and for how long it can be trusted, for whoever watches over it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from rollcage.core.errors import RollcageError
from rollcage.store.store import plain_errors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.store.store import Store
    from rollcage.telemetry.metrics import Metrics

# Several looks between two scrapes, so that no scrape shows what was long ago.
EVERY: Final = timedelta(seconds=3)

# Each look is a connection of its own; certificates change within days.
CERTIFICATE_EVERY: Final = timedelta(hours=1)


@asynccontextmanager
async def pulse(
    store: Store, metrics: Metrics, *, every: timedelta = EVERY, certificate_every: timedelta = CERTIFICATE_EVERY
) -> AsyncIterator[None]:
    """Look for the length of the block."""

    async def look() -> None:
        while True:
            metrics.store_up.at().set(await answers(store))
            await asyncio.sleep(every.total_seconds())

    async def look_at_certificate() -> None:
        while True:
            # One that has expired lets nobody connect: what was seen before stands.
            with suppress(RollcageError):
                metrics.store_certificate_expiry.at().set(await store.certificate_expires())
            await asyncio.sleep(certificate_every.total_seconds())

    async with plain_errors(), asyncio.TaskGroup() as tasks:
        looking = [tasks.create_task(look()), tasks.create_task(look_at_certificate())]
        try:
            yield
        finally:
            for task in looking:
                task.cancel()


async def answers(store: Store) -> bool:
    """Tell whether Redis answers."""
    try:
        await store.standpoint()
    except RollcageError:
        return False
    return True
