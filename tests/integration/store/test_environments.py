"""What the leader reads of the cluster reaches gateways through the store."""

import asyncio
from contextlib import aclosing

import pytest
from redis.asyncio import Redis

from integration.store.desk import Desk
from rollcage.core.errors import NotLeader
from support.environments import environment

SMALL = environment("small", env={"A": "b"}, tools={"custom": [{"name": "lint", "command": ["/opt/lint"]}]})


async def test_what_is_published_is_read_as_it_was(desk: Desk) -> None:
    await desk.leader.environments.publish({"small": SMALL})

    assert await desk.store.environments.read() == {"small": SMALL}


async def test_that_there_are_none_is_not_that_nobody_knows(desk: Desk, redis: Redis) -> None:
    assert await desk.store.environments.read() is None
    await desk.leader.environments.publish({})
    assert await desk.store.environments.read() == {}

    await redis.flushall()
    assert await desk.store.environments.read() is None


async def test_readers_are_told_of_every_change(desk: Desk) -> None:
    await desk.leader.environments.publish({"small": SMALL})
    async with asyncio.timeout(10), aclosing(desk.store.environments.observe()) as sets:
        assert set(await anext(sets)) == {"small"}
        await desk.leader.environments.publish({"small": SMALL, "other": environment("other")})
        assert set(await anext(sets)) == {"small", "other"}


async def test_a_deposed_leader_publishes_nothing(desk: Desk) -> None:
    await desk.store.as_leader(2).environments.publish({})

    with pytest.raises(NotLeader):
        await desk.store.as_leader(1).environments.publish({"small": SMALL})
    assert await desk.store.environments.read() == {}
