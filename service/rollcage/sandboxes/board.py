"""
What a source shows: the latest of every sandbox, and each change to everyone who watches.

For sources that know their sandboxes themselves. Everything happens at once,
on the loop's own thread, so that what a new watcher is shown first and what it
is told afterwards never overlap and never have a gap.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Self

from rollcage.sandboxes.source import Change, Gone, Sandbox, Seen, Synced


class Board:
    """The sandboxes of one source."""

    def __init__(self) -> None:
        self._latest: dict[str, Sandbox] = {}
        self._watchers: set[_Watcher] = set()
        self._closed = False

    def __iter__(self) -> Iterator[Sandbox]:
        return iter(tuple(self._latest.values()))

    def get(self, name: str) -> Sandbox | None:
        """Return the latest of one sandbox."""
        return self._latest.get(name)

    def show(self, sandbox: Sandbox) -> None:
        """Show a sandbox that is new or has changed."""
        if self._latest.get(sandbox.name) != sandbox:
            self._latest[sandbox.name] = sandbox
            self._tell(Seen(sandbox))

    def take_down(self, last: Sandbox) -> None:
        """Show that a sandbox is gone."""
        if self._latest.pop(last.name, None) is not None:
            self._tell(Gone(last))

    def close(self) -> None:
        """End every watch."""
        self._closed = True
        for watcher in self._watchers:
            watcher.changes.put_nowait(None)

    @asynccontextmanager
    async def observe(self) -> AsyncIterator[AsyncIterator[Change]]:
        """Watch: every sandbox there is, ``Synced``, then what changes."""
        watcher = _Watcher()
        for sandbox in self:
            watcher.changes.put_nowait(Seen(sandbox))
        watcher.changes.put_nowait(Synced())
        if self._closed:
            watcher.changes.put_nowait(None)
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    def _tell(self, change: Change) -> None:
        for watcher in self._watchers:
            watcher.changes.put_nowait(change)


class _Watcher:
    def __init__(self) -> None:
        # Without a bound: what it can hold is a few changes for each sandbox that there ever was.
        self.changes: asyncio.Queue[Change | None] = asyncio.Queue()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        change = await self.changes.get()
        if change is None:
            raise StopAsyncIteration
        return change
