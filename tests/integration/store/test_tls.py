"""A Redis behind TLS: used when its certificate can be trusted, and not otherwise; and how long it can be."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import uvloop

from rollcage.core.errors import StoreUnavailable
from rollcage.store.server import Server
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from support.certificates import Certificates, certificates_for
from support.encrypted import encrypted

LOOPS: tuple[Callable[[], asyncio.AbstractEventLoop], ...] = (asyncio.new_event_loop, uvloop.new_event_loop)
on_each_loop = pytest.mark.parametrize("loop", LOOPS, ids=["asyncio", "uvloop"])

# As certificates tell the time: whole seconds.
SOON = datetime.now(UTC).replace(microsecond=0) + timedelta(days=3)
LATER = SOON + timedelta(days=80)


@pytest.fixture(scope="module")
def shown() -> Certificates:
    return certificates_for("127.0.0.1")


def trusting(tmp_path: Path, *shown: Certificates) -> Path:
    file = tmp_path / "ca.crt"
    file.write_bytes(b"".join(one.authority for one in shown))
    return file


@on_each_loop
def test_a_server_whose_authority_is_known_is_used(
    loop: Callable[[], asyncio.AbstractEventLoop], server: Server, shown: Certificates, tmp_path: Path
) -> None:
    async def use() -> None:
        async with (
            encrypted(server, shown) as redis,
            open_store(Settings(redis.url, ca=trusting(tmp_path, shown))) as store,
        ):
            # Many at once, over one connection; what it says does not matter here.
            await asyncio.gather(*(store.standpoint() for _ in range(100)))

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(use())


async def test_a_server_of_an_unknown_authority_is_not(server: Server, shown: Certificates, tmp_path: Path) -> None:
    another = trusting(tmp_path, certificates_for("127.0.0.1"))

    async with encrypted(server, shown) as redis:
        for ca in (None, another):
            with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
                async with open_store(Settings(redis.url, ca=ca)):
                    pass


async def test_a_server_of_another_name_is_not(server: Server, tmp_path: Path) -> None:
    shown = certificates_for("elsewhere.example")

    async with encrypted(server, shown) as redis:
        with pytest.raises(StoreUnavailable, match="CERTIFICATE_VERIFY_FAILED"):
            async with open_store(Settings(redis.url, ca=trusting(tmp_path, shown))):
                pass


@on_each_loop
@pytest.mark.parametrize(
    ("certificate", "authority"), [(SOON, LATER), (LATER, SOON)], ids=["its own end", "its authority's end"]
)
def test_a_certificate_is_good_until_it_or_its_authority_expires(
    loop: Callable[[], asyncio.AbstractEventLoop],
    server: Server,
    certificate: datetime,
    authority: datetime,
    tmp_path: Path,
) -> None:
    shown = certificates_for("127.0.0.1", until=certificate, authority_until=authority)

    async def look() -> float:
        async with (
            encrypted(server, shown) as redis,
            open_store(Settings(redis.url, ca=trusting(tmp_path, shown))) as store,
        ):
            return await store.certificate_expires()

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(look()) == SOON.timestamp()


async def test_an_authority_that_signed_nothing_here_may_expire(server: Server, tmp_path: Path) -> None:
    shown = certificates_for("127.0.0.1", until=LATER, authority_until=LATER)
    stranger = certificates_for("127.0.0.1", authority="another authority", authority_until=SOON)

    async with (
        encrypted(server, shown) as redis,
        open_store(Settings(redis.url, ca=trusting(tmp_path, stranger, shown))) as store,
    ):
        assert await store.certificate_expires() == LATER.timestamp()


async def test_a_renewed_certificate_is_seen_although_the_connection_is_older(server: Server, tmp_path: Path) -> None:
    old, new = (certificates_for("127.0.0.1", until=until, authority_until=LATER) for until in (SOON, LATER))

    async with (
        encrypted(server, old) as redis,
        open_store(Settings(redis.url, ca=trusting(tmp_path, old, new))) as store,
    ):
        redis.show(new)
        assert await store.certificate_expires() == LATER.timestamp()


async def test_a_certificate_that_has_expired_cannot_be_looked_at(server: Server, tmp_path: Path) -> None:
    good = certificates_for("127.0.0.1")
    expired = certificates_for("127.0.0.1", until=datetime.now(UTC) - timedelta(minutes=1))

    async with (
        encrypted(server, good) as redis,
        open_store(Settings(redis.url, ca=trusting(tmp_path, good, expired))) as store,
    ):
        redis.show(expired)
        with pytest.raises(StoreUnavailable, match="certificate has expired"):
            await store.certificate_expires()
        # Whoever is connected goes on.
        await store.standpoint()


async def test_what_nobody_looks_at_never_expires(server: Server, shown: Certificates) -> None:
    async with (
        open_store(Settings(server.url)) as plain,
        encrypted(server, shown) as redis,
        open_store(Settings(f"{redis.url}?ssl_cert_reqs=none")) as trusting_anybody,
    ):
        assert await plain.certificate_expires() == 0
        assert await trusting_anybody.certificate_expires() == 0
