"""One real server for all tests of the store; each test finds it empty, its store live and its own."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from redis.asyncio import Redis

from integration.store.desk import Clock, Desk
from rollcage.store.server import PATH_NAMES, Server, ServerConfig, bundled_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store

# Every server that this machine has; which of them are missing is said once, in test_server.py.
ON_PATH = tuple(Path(found) for name in PATH_NAMES if (found := shutil.which(name)))
EXECUTABLES = (*((bundled,) if (bundled := bundled_executable()) else ()), *ON_PATH)


@pytest.fixture(scope="session", params=EXECUTABLES, ids=str)
def executable(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture(scope="session")
def server(executable: Path) -> Iterator[Server]:
    # A loop of its own: each test has one too, and the server outlives them.
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        try:
            yield runner.run(stack.enter_async_context(running(ServerConfig(executable))))
        finally:
            runner.run(stack.aclose())


@pytest.fixture
async def redis(server: Server) -> AsyncIterator[Redis]:
    async with Redis.from_url(server.url) as client:
        await client.flushall()
        await client.script_flush()
        yield client


@pytest.fixture
def settings(server: Server) -> Settings:
    return Settings(server.url)


@pytest.fixture
async def empty(redis: Redis, settings: Settings) -> AsyncIterator[Desk]:
    clock = Clock()
    async with open_store(settings, clock=clock) as store:
        yield Desk(store, redis, clock)


@pytest.fixture
async def desk(empty: Desk) -> Desk:
    await empty.leader.recovery.begin("g1")
    await empty.leader.recovery.complete("g1")
    return empty
