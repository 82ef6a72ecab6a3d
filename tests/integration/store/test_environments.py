"""What the leader reads of the cluster reaches gateways through the store."""

import asyncio
from contextlib import aclosing, closing
from dataclasses import replace
from pathlib import Path

import pytest
from redis.asyncio import Redis

from integration.store.desk import Desk
from rollcage.core.errors import NotLeader, StoreUnavailable
from rollcage.store.environments import Environments
from rollcage.store.link import Link, connect
from rollcage.store.settings import Settings
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


async def test_a_reader_outlives_a_server_that_tells_of_changes_and_is_then_away(
    desk: Desk, redis: Redis, settings: Settings, tmp_path: Path
) -> None:
    await desk.leader.environments.publish({"small": SMALL})
    # Messages come over one connection and answers over another, which here cannot be made yet.
    door = tmp_path / "redis.sock"
    late = replace(settings, url=f"unix://{door}")
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks, connect(late) as client:
        with closing(Link(client, settings=late, tasks=tasks)) as link:
            environments = Environments(link, redis)
            async with aclosing(environments.observe()) as sets:
                first = asyncio.ensure_future(anext(sets))
                with pytest.raises(StoreUnavailable):
                    await environments.read()
                assert not first.done()

                door.symlink_to(settings.url.removeprefix("unix://"))

                assert set(await first) == {"small"}


async def test_a_deposed_leader_publishes_nothing(desk: Desk) -> None:
    await desk.store.as_leader(2).environments.publish({})

    with pytest.raises(NotLeader):
        await desk.store.as_leader(1).environments.publish({"small": SMALL})
    assert await desk.store.environments.read() == {}
