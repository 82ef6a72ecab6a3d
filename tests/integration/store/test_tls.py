"""A Redis behind TLS: used when its certificate can be trusted, and not otherwise."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop

from rollcage.core.errors import StoreUnavailable
from rollcage.store.server import Server
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from support.certificates import Certificates, certificates_for

LOOPS: tuple[Callable[[], asyncio.AbstractEventLoop], ...] = (asyncio.new_event_loop, uvloop.new_event_loop)


@pytest.fixture(scope="module")
def shown() -> Certificates:
    return certificates_for("127.0.0.1")


@asynccontextmanager
async def encrypted(server: Server, shown: Certificates, directory: Path) -> AsyncIterator[str]:
    """Put TLS before a server that has none; give its address."""
    (directory / "certificate").write_bytes(shown.certificate)
    (directory / "key").write_bytes(shown.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "certificate", directory / "key")

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
        yield f"rediss://127.0.0.1:{listening.sockets[0].getsockname()[1]}/0"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.close()


@pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])
def test_a_server_whose_authority_is_known_is_used(
    loop: Callable[[], asyncio.AbstractEventLoop], server: Server, shown: Certificates, tmp_path: Path
) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(shown.authority)

    async def use() -> None:
        async with (
            encrypted(server, shown, tmp_path) as url,
            open_store(Settings(url, ca=authority)) as store,
        ):
            # Many at once, over one connection; what it says does not matter here.
            await asyncio.gather(*(store.standpoint() for _ in range(100)))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(use())


async def test_a_server_of_an_unknown_authority_is_not(server: Server, shown: Certificates, tmp_path: Path) -> None:
    authority = tmp_path / "ca.crt"
    authority.write_bytes(certificates_for("127.0.0.1").authority)

    async with encrypted(server, shown, tmp_path) as url:
        for ca in (None, authority):
            with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                async with open_store(Settings(url, ca=ca)):
                    pass


async def test_a_server_of_another_name_is_not(server: Server, tmp_path: Path) -> None:
    shown = certificates_for("elsewhere.example")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(shown.authority)

    async with encrypted(server, shown, tmp_path) as url:
        with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            async with open_store(Settings(url, ca=authority)):
                pass
