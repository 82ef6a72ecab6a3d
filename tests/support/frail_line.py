"""
A line to a toolserver that can be cut, can lead elsewhere, and can swallow what is sent.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from support.cut_line import Line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.local_toolserver import LocalToolserver
    from support.stage import Stage


class FrailLine(Line):
    """Passes connections on to a toolserver."""

    def __init__(self, server: LocalToolserver) -> None:
        super().__init__(*_peer(server))
        self.swallowed = asyncio.Event()
        self._real = self._target
        self._hole: asyncio.Server | None = None

    def lead_to(self, server: LocalToolserver) -> None:
        """Pass new connections on to another one."""
        self._real = self._target = _peer(server)

    async def swallow(self) -> None:
        """From now on take what is sent and pass nothing on: the target is a hole, until the line is mended."""
        self._hole = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self._target = self._hole.sockets[0].getsockname()[:2]
        await super().cut()
        super().mend()

    def mend(self) -> None:
        self._target = self._real
        if self._hole:
            self._hole.close()
        super().mend()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 16):
            self.swallowed.set()
        writer.close()


class OldRelease(FrailLine):
    """Makes a toolserver of one from before there were seals: it is asked for something that it does not know."""

    def passed(self, data: bytes) -> bytes:
        return data.replace(b"POST /v1/seal", b"POST /v1/none")


@asynccontextmanager
async def frail_line(
    stage: Stage, name: str = "sbx-1", *, kind: type[FrailLine] = FrailLine, **config: Any
) -> AsyncIterator[FrailLine]:
    """Offer a sandbox at the other end of a frail line."""
    async with kind(stage.start(name, **config)).open() as line:
        assert isinstance(line, FrailLine)
        await stage.offer(name, address=f"http://127.0.0.1:{line.port}")
        yield line


def _peer(server: LocalToolserver) -> tuple[str, int]:
    with server.dial() as connection:
        host, port = connection.getpeername()
    return host, port
