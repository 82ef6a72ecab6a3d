"""
A Redis behind TLS: put before one that has none, with a certificate that can be changed while it serves.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.store.server import Server
    from support.certificates import Certificates


@dataclass(frozen=True, slots=True)
class Encrypted:
    """Where it is, and what it shows."""

    url: str
    _context: ssl.SSLContext

    def show(self, shown: Certificates) -> None:
        """Show this to whoever connects from now on."""
        _load(self._context, shown)


@asynccontextmanager
async def encrypted(server: Server, shown: Certificates) -> AsyncIterator[Encrypted]:
    """Put TLS before a server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, shown)

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(server.url.removeprefix("unix://"))
        try:
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        except OSError:
            pass
        finally:
            for one in (writer, back):
                one.transport.abort()

    listening = await asyncio.start_server(pass_on, "127.0.0.1", 0, ssl=context)
    async with listening:
        yield Encrypted(f"rediss://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0", context)


def _load(context: ssl.SSLContext, shown: Certificates) -> None:
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_bytes(shown.certificate + shown.key)
        context.load_cert_chain(file.name)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()
