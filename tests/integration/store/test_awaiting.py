"""A process that starts before its Redis."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rollcage.core.errors import StoreUnavailable
from rollcage.store.server import Server
from rollcage.store.settings import Settings
from rollcage.wiring.awaiting import awaited_store


async def test_a_redis_that_comes_later_is_waited_for(server: Server, tmp_path: Path) -> None:
    later = tmp_path / "redis.sock"
    opened = asyncio.Event()

    async def start() -> None:
        async with awaited_store(Settings(f"unix://{later}")) as store:
            await store.standpoint()
            opened.set()

    with capture_logs() as logs:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(start())
            while not logs:  # noqa: ASYNC110 - a log has no event
                await asyncio.sleep(0.01)
            assert not opened.is_set()
            later.symlink_to(server.url.removeprefix("unix://"))

    assert opened.is_set()
    assert [one["event"] for one in logs] == ["store_awaited"]


async def test_one_that_never_comes_is_given_up(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        async with awaited_store(Settings(f"unix://{tmp_path / 'never.sock'}"), patience=timedelta()):
            pass
