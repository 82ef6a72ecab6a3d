"""What a claim promises, on a real Redis."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from integration.store.desk import FAILED_NODE, PATIENCE, TRAINED, Desk, call, key, sandbox, subject, wish
from rollcage.core.errors import ClaimTimedOut, MayHaveRun, QueueFull, RolloutEnded
from rollcage.store.calls import CallEnding, CallState
from rollcage.store.claims import Claims
from rollcage.store.records import State
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.store.wakes import Wakes
from support.waiting import eventually

AT_ONCE = timedelta()
SOON = timedelta(milliseconds=50)


async def in_line(desk: Desk, *rollouts: tuple[str, str]) -> list[asyncio.Task[str]]:
    """Let rollouts queue up, one after the other."""
    tasks = []
    for rollout, run in rollouts:
        before = await desk.waiting()
        tasks.append(asyncio.create_task(desk.claim(rollout, run)))
        await desk.until_waiting(before + 1)
    return tasks


async def served(tasks: list[asyncio.Task[str]]) -> list[int]:
    """Wait until one more is served, and return which are."""
    await asyncio.wait([task for task in tasks if not task.done()], return_when=asyncio.FIRST_COMPLETED)
    return [i for i, task in enumerate(tasks) if task.done()]


async def test_a_rollout_gets_the_same_sandbox_however_often_it_asks(desk: Desk) -> None:
    await desk.offer("s1", "s2")

    assert await desk.claim("r1") == await desk.claim("r1")


async def test_parallel_claims_of_one_rollout_agree(desk: Desk) -> None:
    await desk.offer(*(f"s{i}" for i in range(8)))

    assert len(set(await asyncio.gather(*(desk.claim("r1") for _ in range(8))))) == 1


async def test_what_a_retry_says_of_run_and_environment_does_not_move_the_rollout(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    first = await desk.claim("r1", "a")

    assert await desk.claim("r1", "b") == first


async def test_five_hundred_claims_on_five_hundred_ready_get_distinct_sandboxes(desk: Desk) -> None:
    await asyncio.gather(*(desk.offer(f"s{i}") for i in range(500)))

    got = await asyncio.gather(*(desk.claim(f"r{i}", f"run{i % 7}") for i in range(500)))

    assert len(set(got)) == 500


async def test_claims_of_two_gateways_and_slow_offers_meet_without_a_double(desk: Desk, settings: Settings) -> None:
    async with open_store(settings, clock=desk.clock) as second:
        other = Desk(second, desk.redis, desk.clock)
        claims = [(desk, other)[i % 2].claim(f"r{i // 2}", f"run{i % 3}") for i in range(200)]
        offers = asyncio.create_task(desk.offer(*(f"s{i}" for i in range(100))))

        got = await asyncio.gather(*claims)
        await offers

    assert got[::2] == got[1::2]
    assert len(set(got)) == 100


async def test_within_a_run_the_first_to_come_is_the_first_served(desk: Desk) -> None:
    tasks = await in_line(desk, ("r1", "a"), ("r2", "a"), ("r3", "a"))

    for turn in range(3):
        await desk.offer(f"s{turn}")
        assert await served(tasks) == list(range(turn + 1))


async def test_runs_take_turns_however_many_of_one_are_waiting(desk: Desk) -> None:
    tasks = await in_line(desk, ("r1", "a"), ("r2", "a"), ("r3", "a"), ("r4", "b"))

    await desk.offer("s1", "s2")
    await asyncio.gather(tasks[0], tasks[3])

    assert not tasks[1].done()
    await desk.offer("s3", "s4")
    await asyncio.gather(*tasks)


async def test_a_full_line_refuses_and_remembers_nothing(desk: Desk) -> None:
    tasks = await in_line(desk, ("r1", "a"))

    with pytest.raises(QueueFull) as refused:
        await desk.store.claims.claim(wish("r2", max_waiting=1))

    assert (refused.value.waiting, refused.value.limit) == (1, 1)
    assert await desk.store.rollouts.get(key("r2")) is None
    await desk.offer("s1")
    await asyncio.gather(*tasks)


async def test_who_is_already_in_a_full_line_may_ask_again(desk: Desk) -> None:
    first = asyncio.create_task(desk.store.claims.claim(wish("r1", max_waiting=1)))
    await desk.until_waiting(1)
    again = asyncio.create_task(desk.store.claims.claim(wish("r1", max_waiting=1)))

    await desk.offer("s1")

    assert await first == await again


async def test_at_the_deadline_the_claim_is_refused_and_the_line_is_empty(desk: Desk) -> None:
    with pytest.raises(ClaimTimedOut) as refused:
        await desk.claim("r1", wait=SOON)

    assert refused.value.retry_after > 0
    assert await desk.waiting() == 0
    await desk.offer("s1")
    assert (await desk.record("r1")).state is State.ASKED


async def test_without_patience_nobody_is_put_in_line(desk: Desk) -> None:
    with pytest.raises(ClaimTimedOut):
        await desk.claim("r1", wait=AT_ONCE)

    assert await desk.store.rollouts.get(key("r1")) is None


async def test_who_gave_up_finds_its_old_place_when_it_comes_back(desk: Desk) -> None:
    with pytest.raises(ClaimTimedOut):
        await desk.claim("r1", wait=SOON)
    tasks = await in_line(desk, ("r2", "a"), ("r1", "a"))

    await desk.offer("s1")

    assert await served(tasks) == [1]
    await desk.offer("s2")
    await asyncio.gather(*tasks)


async def test_a_sandbox_bound_at_the_last_moment_is_the_rollouts(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    # The wake-up is lost and no look again comes before the deadline: only leaving the line can find out.
    monkeypatch.setattr(Wakes, "wake", lambda *_: None)
    task = asyncio.create_task(desk.claim("r1", wait=timedelta(milliseconds=200)))
    await desk.until_waiting(1)
    await desk.offer("s1")

    assert await task == "s1"


async def test_a_cancelled_caller_leaves_the_line(desk: Desk) -> None:
    (task,) = await in_line(desk, ("r1", "a"))

    task.cancel()
    await desk.until_waiting(0)
    await desk.offer("s1")

    assert (await desk.store.pools.counts("py")).ready == 1


async def test_a_cancelled_caller_keeps_the_place_of_its_twin(desk: Desk) -> None:
    (task,) = await in_line(desk, ("r1", "a"))
    twin = asyncio.create_task(desk.claim("r1"))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.wait([task])
    await desk.offer("s1")

    assert await twin == "s1"


async def test_a_sandbox_given_to_a_caller_that_went_away_is_there_for_its_retry(desk: Desk) -> None:
    (task,) = await in_line(desk, ("r1", "a"))
    await desk.leader.pools.offer(sandbox("s1"))
    task.cancel()
    await asyncio.wait([task])

    assert await desk.claim("r1", wait=AT_ONCE) == "s1"


async def test_the_place_of_a_silent_gateway_lapses(desk: Desk, settings: Settings) -> None:
    # Asked as a gateway asks, by somebody who is never heard of again.
    silent = Claims(desk.store._link, wakes=Wakes(), calls=desk.store.calls, settings=settings)  # noqa: SLF001
    await desk.store._link.run("claim", **silent._fields(wish("r1"), 30.0))  # noqa: SLF001
    assert await desk.waiting() == 1

    desk.clock.advance(settings.heartbeat)
    await desk.offer("s1")

    assert (await desk.record("r1")).state is State.ASKED
    assert (await desk.store.pools.counts("py")).ready == 1


async def test_a_waiter_that_is_heard_of_keeps_its_place(desk: Desk, settings: Settings) -> None:
    (task,) = await in_line(desk, ("r1", "a"))
    for _ in range(3):
        desk.clock.advance(settings.heartbeat * 0.9)
        await desk.store._link.run("claim", **desk.store.claims._fields(wish("r1"), 30.0))  # noqa: SLF001

    await desk.offer("s1")

    assert await task == "s1"


async def test_a_lost_message_only_delays(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wakes, "wake", lambda *_: None)
    (task,) = await in_line(desk, ("r1", "a"))

    await desk.offer("s1")

    assert await task == "s1"


async def test_a_waiter_outlives_its_connections(desk: Desk) -> None:
    (task,) = await in_line(desk, ("r1", "a"))

    await desk.redis.client_kill_filter(_type="pubsub")
    await desk.redis.client_kill_filter(_type="normal", skipme=True)
    await desk.offer("s1")

    assert await task == "s1"


async def test_forgotten_scripts_are_sent_again(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.redis.script_flush()

    begun = await desk.store.claims.start(wish("r1"), call())

    assert begun.state is CallState.NEW


async def test_one_forgotten_script_of_two_changes_nothing_for_the_caller(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.redis.script_flush()
    await desk.store.claims.claim(wish("other", wait=SOON))  # the server knows claim again, and not begin
    await desk.offer("s2")

    begun = await desk.store.claims.start(wish("r1"), call())

    assert begun.state is CallState.NEW


async def test_a_server_that_remembers_how_to_begin_but_not_how_to_claim_changes_nothing_either(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await desk.store.claims.start(wish("before"), call("c1"))
    await desk.redis.script_flush()
    await desk.store.calls.begin(wish("before").subject.key, call("c2"), sandbox=None)

    begun = await desk.store.claims.start(wish("new"), call())

    assert begun.state is CallState.NEW


async def test_a_first_call_takes_one_round_trip(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    await desk.offer("s1", "s2")
    await desk.store.claims.start(wish("r1"), call())
    link = desk.store._link  # noqa: SLF001
    pipe = link._pipe  # noqa: SLF001
    assert pipe
    send, sent = pipe.send, []

    def counted(orders: Sequence[Any]) -> None:
        sent.append(len(orders))
        send(orders)

    monkeypatch.setattr(pipe, "send", counted)

    await desk.store.claims.start(wish("r2"), call())

    assert sent == [2]


async def test_a_first_call_waits_for_its_sandbox(desk: Desk) -> None:
    task = asyncio.create_task(desk.store.claims.start(wish("r1"), call()))
    await desk.until_waiting(1)

    await desk.offer("s1")
    begun = await task

    assert begun.sandbox
    assert (begun.state, begun.sandbox.name) == (CallState.NEW, "s1")


async def test_a_caller_that_goes_away_while_it_begins_leaves_no_mark(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    task = asyncio.create_task(desk.store.claims.start(wish("r1"), call()))
    await asyncio.sleep(0)  # asked, not answered
    task.cancel()
    await asyncio.wait([task])

    again = await desk.store.claims.start(wish("r1"), call(attempt="attempt-2"))

    assert again.state is CallState.NEW
    assert (await desk.record("r1")).delivered == 1


async def test_an_impatient_caller_does_not_shorten_the_wait_of_a_patient_one(desk: Desk) -> None:
    (patient,) = await in_line(desk, ("r1", "a"))
    link = desk.store._link  # noqa: SLF001
    await link.run("claim", **desk.store.claims._fields(wish("r1"), 0.0))
    desk.clock.advance(timedelta(seconds=1))

    await desk.offer("s1")

    assert (await desk.record("r1")).state is State.BOUND
    assert await patient == "s1"


async def test_a_repeated_first_call_of_an_ended_rollout_is_answered_from_the_record(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.store.claims.start(wish("r1"), call())
    await desk.store.calls.finish(key("r1"), "call-1", CallEnding(b"42", "ok"))
    await desk.store.rollouts.end(subject("r1"), TRAINED)

    assert (await desk.store.claims.start(wish("r1"), call())).result == b"42"


async def test_a_rollout_that_ended_gets_no_sandbox(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await desk.claim("r1")
    await desk.store.rollouts.end(subject("r1"), FAILED_NODE)

    with pytest.raises(RolloutEnded) as refused:
        await desk.claim("r1")

    assert (refused.value.verdict, refused.value.cause) == ("masked", "node_lost")


async def test_who_waits_for_a_rollout_hears_of_its_end(desk: Desk) -> None:
    (task,) = await in_line(desk, ("r1", "a"))

    await desk.store.rollouts.end(subject("r1"), TRAINED)

    with pytest.raises(RolloutEnded):
        await task


async def test_a_rollout_nothing_has_reached_moves_out_of_a_dead_sandbox(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.offer("s2")
    moving = wish("r1", instead_of="s1")

    moved = [(await desk.store.claims.claim(moving)).name for _ in range(2)]

    assert moved == ["s2", "s2"]
    assert await desk.store.pools.spent("py") == ("s1",)
    assert (await desk.record("r1")).placements == 1


async def test_a_rollout_that_a_call_may_have_reached_stays_where_it_is(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.offer("s2")
    await desk.begin("r1")

    with pytest.raises(MayHaveRun):
        await desk.store.claims.claim(wish("r1", instead_of="s1"))

    assert await desk.claim("r1") == "s1"


async def test_a_call_that_was_never_sent_lets_the_rollout_move(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.offer("s2")
    await desk.begin("r1")
    assert await desk.store.calls.retract(key("r1"), "call-1", attempt="attempt-1")

    begun = await desk.store.claims.start(wish("r1", instead_of="s1"), call(attempt="attempt-2"))

    assert begun.sandbox
    assert (begun.state, begun.sandbox.name) == (CallState.NEW, "s2")


async def test_a_moved_rollout_that_finds_nothing_ready_is_first_in_line(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    tasks = await in_line(desk, ("r2", "a"))
    moving = asyncio.create_task(desk.store.claims.claim(wish("r1", instead_of="s1")))
    await desk.until_waiting(2)

    await desk.offer("s2")

    assert (await moving).name == "s2"
    assert not tasks[0].done()
    await desk.offer("s3")
    await asyncio.gather(*tasks)


async def test_a_waiter_sits_a_loss_of_memory_out(desk: Desk) -> None:
    (task,) = await in_line(desk, ("r1", "a"))

    await desk.redis.flushall()
    await desk.leader.recovery.begin("g2")
    await desk.leader.recovery.complete("g2")

    async def back() -> bool:
        return await desk.waiting() == 1

    await eventually(back)
    await desk.offer("s1")
    assert await asyncio.wait_for(task, PATIENCE.total_seconds()) == "s1"
