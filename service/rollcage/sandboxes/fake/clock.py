"""
Time that tests move, and the loop's own for where nobody does.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

# Enough for a task that was woken to wake others, and they others again.
_TURNS: Final = 20


class Clock(Protocol):
    """When it is, and doing things later."""

    def now(self) -> datetime:
        """Return the time."""
        ...

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something after a while; what is due at the same time is done in the order of asking."""


class VirtualClock:
    """A clock that stands still until it is moved."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        """Return the time."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._elapsed

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something when the clock has moved that far."""
        heapq.heappush(self._due, (self._elapsed + max(0.0, seconds), next(self._order), do))

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has moved that far."""
        awake = asyncio.Event()
        self.later(seconds, awake.set)
        await awake.wait()

    async def advance(self, seconds: float) -> None:
        """Move the clock; whatever becomes due happens in order, and everyone who waits for it gets a turn."""
        until = self._elapsed + seconds
        await settle()
        while self._due and self._due[0][0] <= until:
            self._elapsed, _, do = heapq.heappop(self._due)
            do()
            await settle()
        self._elapsed = until


class LoopClock:
    """The time of the running loop."""

    def now(self) -> datetime:
        """Return the time."""
        return datetime.now(UTC)

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        """Do something after a while."""
        asyncio.get_running_loop().call_later(seconds, do)


async def settle() -> None:
    """Let every task that can go on do so."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
