"""The leader tells what only it sees: what is wanted, and what is on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollcage.sandboxes.fake.fate import always, unschedulable
from rollcage.store.pools import LEVELS_HOLD, Level
from support.pools import Pools, until

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from rollcage.store.store import Store


async def test_a_full_pool_is_told_and_lapses_when_nobody_leads(store: Store, redis: Redis) -> None:
    assert await store.pools.levels() is None
    pools = Pools(store, warm=3)
    async with pools.keeper():
        await until(lambda: _told(store, Level(wanted=3, starting=0)), "a full pool")
    (key,) = await redis.keys("*:levels")
    assert 0 < await redis.pttl(key) <= LEVELS_HOLD.total_seconds() * 1000


async def test_what_is_on_its_way_counts_as_starting(store: Store) -> None:
    pools = Pools(store, fates=always(unschedulable()), warm=3)
    async with pools.keeper():
        await until(lambda: _starting(store), "something on its way")
    assert (await store.pools.counts("small")).ready == 0


async def _told(store: Store, level: Level) -> bool:
    return await store.pools.levels() == {"small": level}


async def _starting(store: Store) -> bool:
    levels = await store.pools.levels()
    return bool(levels and levels["small"].starting and levels["small"].wanted == 3)
