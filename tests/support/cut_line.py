"""
A line to a server that can be cut and mended: bytes are passed on as they are, until they are not.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Line:
    """Listens on this machine and passes connections on to one address."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._whole = True
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Line]:
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            await self.cut()

    async def cut(self) -> None:
        """End every connection, and refuse new ones."""
        self._whole = False
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def mend(self) -> None:
        self._whole = True

    def passed(self, data: bytes) -> bytes:
        """Return what arrives of what was sent."""
        return data

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        writers = [writer]
        try:
            if self._whole:
                there, back = await asyncio.open_connection(*self._target)
                writers.append(back)
                await asyncio.gather(_copy(reader, back, self.passed), _copy(there, writer, bytes))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            for one in writers:
                one.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: Callable[[bytes], bytes]) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(passed(data))
            await writer.drain()
    writer.close()
