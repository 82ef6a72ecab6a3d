"""A store for each test, empty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.store.settings import Settings
from rollcage.store.store import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis

    from rollcage.store.server import Server
    from rollcage.store.store import Store


@pytest.fixture
async def store(server: Server, redis: Redis) -> AsyncIterator[Store]:
    assert await redis.ping()
    async with open_store(Settings(server.url)) as opened:
        yield opened
