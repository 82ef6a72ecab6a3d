"""How the way to Redis behaves when callers or the server go away."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from integration.store.desk import ENVIRONMENT, Desk, sandbox
from rollcage.core.errors import StoreUnavailable
from rollcage.store.server import ServerConfig, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store


async def test_what_is_asked_at_the_same_time_shares_a_round_trip(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    link = desk.store._link  # noqa: SLF001
    send, sent = link._send, []  # noqa: SLF001

    async def counted(commands: list[Any]) -> list[Any]:
        sent.append(len(commands))
        return await send(commands)

    monkeypatch.setattr(link, "_send", counted)

    await asyncio.gather(*(desk.store.standpoint() for _ in range(100)))

    assert sent == [100]


async def test_a_caller_that_goes_away_does_not_disturb_the_others(desk: Desk) -> None:
    tasks = [asyncio.create_task(desk.store.pools.counts(ENVIRONMENT)) for _ in range(3)]
    await asyncio.sleep(0)

    tasks[1].cancel()

    first, _, last = await asyncio.gather(*tasks, return_exceptions=True)
    assert first == last


async def test_a_dropped_connection_is_not_noticed(desk: Desk) -> None:
    for i in range(10):
        await desk.redis.client_kill_filter(_type="normal", skipme=True)
        await desk.offer(f"s{i}")

    assert (await desk.store.pools.counts(ENVIRONMENT)).ready == 10


async def test_a_server_that_died_is_unavailable_and_the_store_can_still_be_closed(executable: Path) -> None:
    async with running(ServerConfig(executable)) as server, open_store(Settings(server.url)) as store:
        os.kill(server.pid, signal.SIGKILL)

        with pytest.raises(StoreUnavailable) as refused:
            await store.as_leader(1).pools.offer(sandbox("s1"))

    assert refused.value.code == "store_unavailable"
