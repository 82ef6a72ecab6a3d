"""One real Redis for all tests here; each finds it empty."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis

from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from rollcage.store.server import Server
    from rollcage.store.store import Store


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    # A loop of its own: each test has one too, and the server outlives them.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(stack.enter_async_context(running(ServerConfig(find_executable()))))
        finally:
            runner.run(stack.aclose())


@pytest.fixture
async def redis(server: Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url) as client:
        await client.flushall()
        yield client


@pytest.fixture
async def store(server: Server, redis: Redis) -> AsyncIterator[Store]:
    assert await redis.ping()
    async with open_store(Settings(server.url)) as opened:
        yield opened
