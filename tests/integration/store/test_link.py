"""How the way to Redis behaves when callers or the server go away."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from redis.asyncio import Redis

from integration.store.desk import ENVIRONMENT, Desk, sandbox
from rollcage.core.errors import StoreUnavailable
from rollcage.store import link
from rollcage.store.server import ServerConfig, running
from rollcage.store.settings import Settings
from rollcage.store.store import Store, open_store

Connect: TypeAlias = Callable[..., Awaitable[None]]


async def test_what_is_asked_at_the_same_time_shares_a_round_trip(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = desk.store._link._pipe  # noqa: SLF001
    assert pipe
    send, sent = pipe.send, []

    def counted(orders: Sequence[Any]) -> None:
        sent.append(len(orders))
        send(orders)

    monkeypatch.setattr(pipe, "send", counted)

    await asyncio.gather(*(desk.store.standpoint() for _ in range(100)))

    # The first finds nobody to go along with.
    assert sent == [1, 99]


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


async def test_a_listener_that_is_cancelled_at_any_point_of_its_connecting_stops(settings: Settings) -> None:
    async with open_store(settings) as store:

        async def listen() -> None:
            async for _ in store.changes():
                pass

        for turns in range(80):
            listening = asyncio.create_task(listen())
            for _ in range(turns):
                await asyncio.sleep(0)
            listening.cancel()
            done, _ = await asyncio.wait({listening}, timeout=10)
            assert done, f"still listening after a cancellation at turn {turns}"


async def test_a_server_that_falls_silent_is_given_up_and_found_again(executable: Path) -> None:
    soon = timedelta(seconds=0.3)
    async with running(ServerConfig(executable)) as server, open_store(Settings(server.url, timeout=soon)) as store:
        os.kill(server.pid, signal.SIGSTOP)
        try:
            with pytest.raises(StoreUnavailable):
                await store.standpoint()
        finally:
            os.kill(server.pid, signal.SIGCONT)

        assert (await store.standpoint()).leader == 0


async def test_a_connection_that_is_never_made_is_given_up(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library may swallow what should end it; whoever waited for Redis then waited for ever."""
    over = asyncio.Event()

    async def deaf(*_: Any, **__: Any) -> None:
        while not over.is_set():
            with suppress(asyncio.CancelledError):
                await over.wait()
        raise OSError

    async with open_store(replace(settings, timeout=timedelta(seconds=0.05))) as store:
        await _is_given_up_and_found_again(store, monkeypatch, deaf)
        over.set()


async def test_connecting_that_ends_by_itself_leaves_nobody_waiting(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*_: Any, **__: Any) -> None:
        raise asyncio.CancelledError

    async with open_store(settings) as store:
        await _is_given_up_and_found_again(store, monkeypatch, cancelled)


async def _is_given_up_and_found_again(store: Store, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> None:
    """Cut the line, and let nobody be reached for a while but by *connect*."""
    pipe = store._link._pipe  # noqa: SLF001
    assert pipe
    pipe.close()
    with monkeypatch.context() as patched:
        patched.setattr(link, "open_pipe", connect)
        with pytest.raises(StoreUnavailable):
            await store.standpoint()
    assert await store.standpoint()


async def test_what_a_lost_connection_did_not_answer_is_sent_again_in_its_order(desk: Desk) -> None:
    link = desk.store._link  # noqa: SLF001
    names = [f"s{i}" for i in range(20)]
    offers = [asyncio.create_task(desk.offer(name)) for name in names]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert link._pipe  # noqa: SLF001
    link._pipe.close()  # noqa: SLF001
    after = asyncio.create_task(desk.store.pools.counts(ENVIRONMENT))

    await asyncio.gather(*offers)

    assert (await after).ready == 20


async def test_a_command_that_cannot_be_sent_is_the_callers_error_and_nobody_elses(desk: Desk) -> None:
    good = asyncio.create_task(desk.store.standpoint())

    with pytest.raises(TypeError):
        await desk.store._link.ask("GET", object())  # type: ignore[arg-type]  # noqa: SLF001

    assert (await good).leader == 1


async def test_a_server_with_a_password_is_signed_in_to(executable: Path) -> None:
    async with running(ServerConfig(executable)) as server:
        async with Redis.from_url(server.url) as client:
            await client.config_set("requirepass", "open-sesame")
        url = server.url.replace("unix://", "unix://:open-sesame@")

        async with open_store(Settings(url)) as store:
            assert (await store.standpoint()).leader == 0
        with pytest.raises(StoreUnavailable):
            async with open_store(Settings(server.url)):
                pass


async def test_a_store_that_is_closed_refuses_at_once(settings: Settings, redis: Redis) -> None:
    assert await redis.ping()
    async with open_store(settings) as store:
        pass

    with pytest.raises(StoreUnavailable):
        await store.standpoint()


async def test_a_store_is_closed_at_once_while_it_connects(executable: Path) -> None:
    slow = timedelta(seconds=30)
    async with running(ServerConfig(executable)) as server:
        async with open_store(Settings(server.url, timeout=slow)) as store:
            os.kill(server.pid, signal.SIGSTOP)
            link = store._link  # noqa: SLF001
            assert link._pipe  # noqa: SLF001
            link._pipe.close()  # noqa: SLF001
            asked = asyncio.create_task(store.standpoint())
            await asyncio.wait([asked], timeout=0.1)
            began = asyncio.get_running_loop().time()
        took = asyncio.get_running_loop().time() - began
        os.kill(server.pid, signal.SIGCONT)

    assert asked.cancelled()
    assert took < 15
