"""
A call that somebody watches, for programs that wait and for those with an event loop.

Leaving it early leaves the call running; its result is asked for by its id.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Self

from rollcage.client.models import Call
from rollcage.client.watching import Event, Piece


class Watched:
    """
    A call while it runs: iterate over its output, then ask for its result.

    *call_id* names it: the same call with the same id, from here or anywhere,
    watches it again or gets its result, and never runs it twice.
    """

    def __init__(self, call_id: str, events: Generator[Event], ask: Callable[[], Call]) -> None:
        self.call_id = call_id
        self._events, self._ask = events, ask
        self._result: Call | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Piece:
        event = next(self._events)
        if isinstance(event, Call):
            self._result = event
            raise StopIteration
        return event

    def result(self) -> Call:
        """Return what it came to; wait for it if need be, without the output in between."""
        self.close()
        if self._result is None:
            self._result = self._ask()
        return self._result

    def close(self) -> None:
        """Stop watching; the call runs on."""
        self._events.close()


class AsyncWatched:
    """
    A call while it runs: iterate over its output, then ask for its result.

    *call_id* names it: the same call with the same id, from here or anywhere,
    watches it again or gets its result, and never runs it twice.
    """

    def __init__(self, call_id: str, events: AsyncGenerator[Event], ask: Callable[[], Awaitable[Call]]) -> None:
        self.call_id = call_id
        self._events, self._ask = events, ask
        self._result: Call | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Piece:
        event = await anext(self._events)
        if isinstance(event, Call):
            self._result = event
            raise StopAsyncIteration
        return event

    async def result(self) -> Call:
        """Return what it came to; wait for it if need be, without the output in between."""
        await self.close()
        if self._result is None:
            self._result = await self._ask()
        return self._result

    async def close(self) -> None:
        """Stop watching; the call runs on."""
        await self._events.aclose()
