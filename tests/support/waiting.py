"""
Waiting for a condition instead of a time.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

# Local processes change within milliseconds.
POLL = 0.01


def until(look: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Return as soon as *look* says yes; that it never does is an error."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, f"still not so after {seconds:.0f} s"
        time.sleep(POLL)


async def eventually(look: Callable[[], Awaitable[bool]], *, seconds: float = 30.0) -> None:
    """Return as soon as *look* says yes; that it never does is an error."""
    async with asyncio.timeout(seconds):
        while not await look():  # noqa: ASYNC110 - what another process does has no event here
            await asyncio.sleep(POLL)
