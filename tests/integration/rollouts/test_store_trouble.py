"""What happens to rollouts while Redis is away, comes back, or comes back empty."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollcage.core.errors import StoreRecovering, StoreUnavailable
from rollcage.core.ids import RolloutId
from rollcage.rollouts.actions import Outcome
from rollcage.store.records import Sandbox, Subject
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from support.stage import ENVIRONMENT, TENANT, Stage, address, open_stage
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis

    from rollcage.store.server import Server
    from support.local_toolserver import LocalToolserver

# A server that does not answer for so long is away; a busy machine answers sooner.
SOON = timedelta(seconds=0.5)


@pytest.fixture
async def own_server() -> AsyncIterator[Server]:
    """A Redis that a test may stop."""
    async with running(ServerConfig(find_executable())) as server:
        try:
            yield server
        finally:
            os.kill(server.pid, signal.SIGCONT)


@pytest.fixture
async def shaky(own_server: Server, binary: Path, tmp_path: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        yield await open_stage(stack, Settings(own_server.url, timeout=SOON), binary=binary, home=tmp_path)


async def test_with_redis_away_a_rollout_that_runs_goes_on_and_is_recorded_later(
    shaky: Stage, own_server: Server
) -> None:
    await shaky.sandbox("sbx-1")
    await shaky.shell("c1", "echo x >> note")
    os.kill(own_server.pid, signal.SIGSTOP)

    answer = await shaky.shell("c2", "echo x >> note; date +%N")
    again = await shaky.shell("c2", "echo x >> note; date +%N")

    assert (answer.outcome, again.result) == (Outcome.OK, answer.result)
    os.kill(own_server.pid, signal.SIGCONT)
    await eventually(lambda: _recorded(shaky, ["c1", "c2"]))
    other = await shaky.gateway()
    assert (await other.act(shaky.action("c2", "echo x >> note; date +%N"))).result == answer.result
    assert (shaky.workdir("sbx-1") / "note").read_text() == "x\nx\n"


async def test_with_redis_away_nothing_new_is_begun(shaky: Stage, own_server: Server) -> None:
    await shaky.sandbox("sbx-1")
    os.kill(own_server.pid, signal.SIGSTOP)

    with pytest.raises(StoreUnavailable):
        await shaky.shell("c1", "echo x >> note")

    os.kill(own_server.pid, signal.SIGCONT)
    assert (await shaky.shell("c1", "echo x >> note")).outcome is Outcome.OK
    assert (shaky.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_redis_going_away_while_a_call_runs_costs_the_answer_nothing(shaky: Stage, own_server: Server) -> None:
    await shaky.sandbox("sbx-1")
    command = "echo x >> note; touch on; while [ ! -e go ]; do sleep 0.01; done; echo done"
    call = asyncio.create_task(shaky.shell("c1", command))
    await eventually(lambda: _exists(shaky, "on"))

    os.kill(own_server.pid, signal.SIGSTOP)
    (shaky.workdir("sbx-1") / "go").touch()

    assert (await call).output == "done\n"
    os.kill(own_server.pid, signal.SIGCONT)
    await eventually(lambda: _recorded(shaky, ["c1"]))


async def test_with_redis_emptied_a_rollout_that_runs_goes_on_and_others_wait_for_the_recovery(
    stage: Stage, redis: Redis
) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo kept >> note")
    await stage.sandbox("sbx-2")
    other = await stage.gateway()
    await redis.flushall()

    assert (await stage.shell("c2", "cat note")).output == "kept\n"
    assert (await stage.shell("c1", "echo kept >> note")).replayed
    for rollout in ("r1", "r2"):
        with pytest.raises(StoreRecovering):
            await other.act(stage.action("c3", "cat note", rollout=rollout))
    await restore(stage, "sbx-1", address(server))

    await eventually(lambda: _recorded(stage, ["c2", "c1"]))
    assert (await other.act(stage.action("c3", "cat note"))).output == "kept\n"


@pytest.mark.parametrize("early", [True, False], ids=["restored before the call ends", "restored after it"])
async def test_a_record_lost_while_a_call_ran_is_written_once_the_rollout_is_restored(
    stage: Stage, redis: Redis, *, early: bool
) -> None:
    server = await stage.sandbox("sbx-1")
    command = "touch on; while [ ! -e go ]; do sleep 0.01; done; echo done"
    call = asyncio.create_task(stage.shell("c1", command))
    await eventually(lambda: _exists(stage, "on"))
    await redis.flushall()
    if early:
        await restore(stage, "sbx-1", address(server))
    (stage.workdir("sbx-1") / "go").touch()

    assert (await call).output == "done\n"
    if not early:
        await restore(stage, "sbx-1", address(server))

    await eventually(lambda: _recorded(stage, ["c1"]))


async def test_a_store_that_refuses_leaves_no_connection_open(stage: Stage, redis: Redis) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1")
    other = await stage.gateway()
    await other.act(stage.action("c2"))
    await redis.flushall()
    another = await stage.gateway()

    with pytest.raises(StoreRecovering):
        await another.act(stage.action("c3"))
    await stage.gateways.aclose()

    await eventually(lambda: _unconnected(server))


async def restore(stage: Stage, name: str, where: str, *, rollout: str = "r1") -> None:
    """Do as the controller does: ask the pod whom it serves, write it down, declare the store live."""
    leader = stage.store.as_leader(2)
    await leader.recovery.begin("g2")
    key = RolloutId(TENANT, rollout).key
    assert stage.servers[name].state().bound_to == key
    card = Sandbox(name=name, environment=ENVIRONMENT, address=where)
    await leader.recovery.restore(Subject(key, ENVIRONMENT), card, may_have_run=True)
    await leader.recovery.complete("g2")


async def _exists(stage: Stage, name: str) -> bool:
    return (stage.workdir("sbx-1") / name).exists()


async def _recorded(stage: Stage, calls: list[str]) -> bool:
    return [name for name, outcome, _ in await stage.steps() if outcome] == calls


async def _unconnected(server: LocalToolserver) -> bool:
    try:
        return _sockets(server) == 1
    except FileNotFoundError:  # closed while they were counted
        return False


def _sockets(server: LocalToolserver) -> int:
    """Count a toolserver's sockets; one is that which it listens on."""
    descriptors = Path(f"/proc/{server.process.pid}/fd").iterdir()
    return sum(str(one.readlink()).startswith("socket:") for one in descriptors)
