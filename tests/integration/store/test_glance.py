"""A call that is kept without the script is kept as the script keeps it, or by the script."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from redis.asyncio import Redis

from integration.store.desk import TRAINED, Desk, call, key, subject
from rollcage.core.errors import RollcageError, RolloutEnded, RolloutUnknown
from rollcage.core.ids import RunId
from rollcage.store.calls import CallEnding, CallState, Marking
from rollcage.store.server import Server, ServerConfig, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from support.waiting import eventually

ENDING = CallEnding(b"42", "failed", boot="b1", shown=2)
RECORD = f"{{rollcage}}:rollout:{key('r1')}"
SCRIPTS = {"cmdstat_evalsha", "cmdstat_eval"}


@pytest.fixture
async def begun(desk: Desk) -> Desk:
    """A rollout that has made its first call, as every one has before a look can be of use."""
    await begin(desk, "r1", "s1")
    return desk


async def begin(desk: Desk, rollout: str, home: str) -> None:
    await desk.offer(home)
    await desk.claim(rollout)
    await desk.begin(rollout)
    await desk.store.calls.finish(key(rollout), "call-1", CallEnding(b"first", "ok", boot="b1"))


def sent(desk: Desk, name: str = "call-2", *, rollout: str = "r1", home: str = "s1") -> Marking:
    return desk.store.calls.mark(key(rollout), call(name), sandbox=home, after=60)


async def looked(marking: Marking) -> Marking:
    """Wait until the look has shown that the script is not needed."""

    async def ready() -> bool:
        return marking._glance is not None and marking._glance._before is not None  # noqa: SLF001

    await eventually(ready)
    return marking


async def scripts_run(redis: Redis) -> bool:
    return not SCRIPTS.isdisjoint(await redis.info("commandstats"))


async def test_it_is_kept_without_the_script(begun: Desk) -> None:
    marking = await looked(sent(begun))
    await begun.redis.config_resetstat()

    kept = await marking.begun(ENDING, within=5)

    assert not await scripts_run(begun.redis)
    assert (kept.state, kept.number) == (CallState.KEPT, 2)
    one = (await begun.store.calls.trajectory(key("r1"))).items[1]
    assert (one.id, one.arguments, one.result, one.outcome) == ("call-2", b"{}", b"42", "failed")
    assert one.begun_at == kept.begun_at
    assert one.finished_at
    assert one.finished_at >= one.begun_at


async def test_it_leaves_behind_what_the_script_would(begun: Desk) -> None:
    await begin(begun, "r2", "s2")
    await (await looked(sent(begun))).begun(ENDING, within=5)
    # Whoever does not let go of the loop has had no look.
    await sent(begun, rollout="r2", home="s2").begun(ENDING, within=5)

    records = []
    for rollout in ("r1", "r2"):
        fields = await begun.redis.hgetall(f"{{rollcage}}:rollout:{key(rollout)}")
        words = fields.pop(b"mark:2").split()
        # But for the times.
        records.append(({name: fields[name] for name in fields if b":" in name}, words[:3] + words[5:], fields))

    one, other = records
    assert one[:2] == other[:2]
    counted = (b"calls", b"delivered", b"bytes", b"boot")
    assert [one[2][name] for name in counted] == [other[2][name] for name in counted]
    run = await begun.store.rollouts.run(RunId("acme", "a").key)
    assert run
    assert run.outcomes == {"ok": 2, "failed": 2}
    assert await begun.redis.zscore("{rollcage}:env:py:activity", key("r1")) == begun.clock.now


async def ended(desk: Desk) -> None:
    await desk.store.rollouts.end(subject("r1"), TRAINED)


async def lost(desk: Desk) -> None:
    await desk.redis.delete(RECORD)


async def emptied(desk: Desk) -> None:
    await desk.redis.flushall()


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        pytest.param(ended, RolloutEnded, id="its rollout ended"),
        pytest.param(lost, RolloutUnknown, id="its record was lost"),
        pytest.param(emptied, RollcageError, id="the server was emptied"),
    ],
)
async def test_what_happens_after_the_look_is_not_overlooked(
    begun: Desk, change: Callable[[Desk], Awaitable[None]], refusal: type[RollcageError]
) -> None:
    marking = await looked(sent(begun))
    await change(begun)
    before = await begun.redis.hgetall(RECORD)

    with pytest.raises(refusal):
        await marking.begun(ENDING, within=5)

    assert await begun.redis.hgetall(RECORD) == before


async def test_a_call_that_another_gateway_began_after_the_look_stays_its_own(begun: Desk) -> None:
    marking = await looked(sent(begun))
    await begun.begin("r1", "call-2", attempt="attempt-2")

    found = await marking.begun(ENDING, within=5)

    assert found.state is CallState.RUNNING
    assert (await begun.store.calls.trajectory(key("r1"))).items[1].result is None


async def test_a_call_that_was_recorded_after_the_look_comes_first(begun: Desk) -> None:
    marking = await looked(sent(begun))
    await begun.begin("r1", "call-3")
    await begun.store.calls.finish(key("r1"), "call-3", CallEnding(b"3", "ok"))

    kept = await marking.begun(ENDING, within=5)

    assert (kept.state, kept.number) == (CallState.KEPT, 3)
    items = (await begun.store.calls.trajectory(key("r1"))).items
    assert [(one.id, one.result) for one in items[1:]] == [("call-3", b"3"), ("call-2", b"42")]


async def test_of_calls_at_once_each_is_kept_once(begun: Desk) -> None:
    names = [f"call-{number}" for number in range(2, 12)]
    markings = [sent(begun, name) for name in names]
    await looked(markings[0])

    kept = await asyncio.gather(*(marking.begun(ENDING, within=5) for marking in markings))

    assert sorted(each.number for each in kept) == list(range(2, 12))
    items = (await begun.store.calls.trajectory(key("r1"))).items
    assert sorted(one.id for one in items[1:]) == sorted(names)


async def test_a_look_that_is_given_up_makes_room_for_the_next(begun: Desk) -> None:
    (await looked(sent(begun))).drop()
    await begun.record("r1")

    kept = await (await looked(sent(begun, "call-3"))).begun(ENDING, within=5)

    assert (kept.state, kept.number) == (CallState.KEPT, 2)


async def test_whoever_is_told_hears_of_a_record_that_changed(begun: Desk) -> None:
    marking = await looked(sent(begun))
    await ended(begun)
    said: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    assert marking.end(ENDING, within=5, then=said.set_result)

    assert not await said
    with pytest.raises(RolloutEnded):
        await marking.begun(ENDING, within=5)


async def test_a_connection_lost_after_the_look_costs_nothing(begun: Desk) -> None:
    marking = await looked(sent(begun))
    await begun.redis.client_kill_filter(_type="normal", skipme=True)

    kept = await marking.begun(ENDING, within=5)

    assert kept.number == 2
    assert [one.id for one in (await begun.store.calls.trajectory(key("r1"))).items] == ["call-1", "call-2"]


async def test_a_connection_lost_while_it_is_kept_keeps_it_once(begun: Desk) -> None:
    marking = await looked(sent(begun))
    keeping = asyncio.create_task(marking.begun(ENDING, within=5))
    await asyncio.sleep(0)
    pipe = begun.store._link._pipe  # noqa: SLF001
    assert pipe
    pipe.close()

    found = await keeping

    # Whether it had been kept before the line was cut is chance.
    assert (found.state, found.number) in {(CallState.KEPT, 2), (CallState.FINISHED, 2)}
    items = (await begun.store.calls.trajectory(key("r1"))).items
    assert [(one.id, one.result) for one in items[1:]] == [("call-2", b"42")]


@asynccontextmanager
async def on_a_server_of_its_own(executable: Path) -> AsyncIterator[tuple[Server, Desk]]:
    async with (
        running(ServerConfig(executable)) as server,
        Redis.from_url(server.url) as redis,
        open_store(Settings(server.url)) as store,
    ):
        desk = Desk(store, redis)
        await desk.leader.recovery.begin("g1")
        await desk.leader.recovery.complete("g1")
        await begin(desk, "r1", "s1")
        yield server, desk


async def test_a_server_that_lets_nobody_watch_is_served_by_the_script(executable: Path) -> None:
    async with on_a_server_of_its_own(executable) as (_, desk):
        await desk.redis.execute_command("ACL", "SETUSER", "default", "-watch")  # type: ignore[no-untyped-call]
        marking = sent(desk)
        # The look has been answered when a later question is.
        await asyncio.sleep(0)
        await desk.record("r1")
        await ended(desk)

        with pytest.raises(RolloutEnded):
            await marking.begun(ENDING, within=5)

        assert len((await desk.store.calls.trajectory(key("r1"))).items) == 1


async def test_a_server_that_does_not_answer_the_script_is_waited_for_once(executable: Path) -> None:
    async with on_a_server_of_its_own(executable) as (server, desk):
        os.kill(server.pid, signal.SIGSTOP)
        try:
            marking = sent(desk)
            said: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

            # Before it could look.
            assert marking.end(ENDING, within=0.2, then=said.set_result)

            assert not await said
            async with asyncio.timeout(30):
                with pytest.raises(TimeoutError):
                    await marking.begun(ENDING, within=600)
        finally:
            os.kill(server.pid, signal.SIGCONT)
