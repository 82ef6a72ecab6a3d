"""
One compiled toolserver for all tests here; each test finds the store live and empty.

Every test with a stage runs twice: calls are awaited, or started as a connection does, and nothing may come of it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, cast

import pytest

from lab.images import build_toolserver
from rollcage.store.settings import Settings
from support.askers import Started
from support.stage import Stage, open_stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from redis.asyncio import Redis

    from rollcage.rollouts.usecases import UseCases
    from rollcage.store.server import Server


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target


@pytest.fixture(params=["awaited", "started"])
async def stage(
    request: pytest.FixtureRequest, redis: Redis, server: Server, binary: Path, tmp_path: Path
) -> AsyncIterator[Stage]:
    assert await redis.ping()
    async with AsyncExitStack() as stack:
        made = await open_stage(stack, Settings(server.url), binary=binary, home=tmp_path)
        if request.param == "started":
            made.use_cases = cast("UseCases", Started(made.use_cases))
        yield made
