"""One real Redis for all integration tests that do not bring their own; each test finds it empty."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis

from rollcage.store.server import ServerConfig, find_executable, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from rollcage.store.server import Server


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
