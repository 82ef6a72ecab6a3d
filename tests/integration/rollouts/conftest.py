"""One real Redis and one compiled toolserver for all tests here; each test finds the store live and empty."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis

from lab.images import build_toolserver
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from support.stage import Stage, open_stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from rollcage.store.server import Server


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target


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
async def stage(redis: Redis, server: Server, binary: Path, tmp_path: Path) -> AsyncIterator[Stage]:
    assert await redis.ping()
    async with AsyncExitStack() as stack:
        yield await open_stage(stack, Settings(server.url), binary=binary, home=tmp_path)
