"""
Wait at the start for a Redis that is not there yet.

On a cluster everything is made at once, and Redis waits for its volume. A
process that gave up at once would be restarted ever later, long after Redis
has come.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog

from rollcage.core.errors import StoreUnavailable
from rollcage.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.store.settings import Settings
    from rollcage.store.store import Store

# Less than the two minutes that the chart gives a start, so that the last word is ours and not a probe's.
PATIENCE: Final = timedelta(seconds=100)
_PAUSE: Final = 0.5

log = structlog.get_logger(__name__)


@asynccontextmanager
async def awaited_store(settings: Settings, *, patience: timedelta = PATIENCE) -> AsyncIterator[Store]:
    """Open the store as soon as it answers; StoreUnavailable if it never does."""
    loop = asyncio.get_running_loop()
    deadline, told = loop.time() + patience.total_seconds(), False
    async with AsyncExitStack() as stack:
        while True:
            try:
                store = await stack.enter_async_context(open_store(settings))
                break
            except StoreUnavailable as error:
                if loop.time() > deadline:
                    raise
                if not told:
                    log.warning("store_awaited", error=str(error))
                told = True
            await asyncio.sleep(_PAUSE)
        yield store
