"""One compiled toolserver for all tests here; each test finds the store live and empty."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest

from lab.images import build_toolserver
from rollcage.store.settings import Settings
from support.stage import Stage, open_stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redis.asyncio import Redis

    from rollcage.store.server import Server


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target


@pytest.fixture
async def stage(redis: Redis, server: Server, binary: Path, tmp_path: Path) -> AsyncIterator[Stage]:
    assert await redis.ping()
    async with AsyncExitStack() as stack:
        yield await open_stage(stack, Settings(server.url), binary=binary, home=tmp_path)
