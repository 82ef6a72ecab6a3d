"""
Look now and then whether Redis answers this process, for whoever watches over it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
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


@asynccontextmanager
async def pulse(store: Store, metrics: Metrics, *, every: timedelta = EVERY) -> AsyncIterator[None]:
    """Look for the length of the block."""

    async def look() -> None:
        while True:
            metrics.store_up.at().set(await answers(store))
            await asyncio.sleep(every.total_seconds())

    async with plain_errors(), asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(look())
        try:
            yield
        finally:
            looking.cancel()


async def answers(store: Store) -> bool:
    """Tell whether Redis answers."""
    try:
        await store.standpoint()
    except RollcageError:
        return False
    return True
