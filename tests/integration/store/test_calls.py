"""What the record of calls promises, on a real Redis."""

import asyncio
import random
from datetime import timedelta

import pytest

from integration.store.desk import FAILED_NODE, TENANT, TRAINED, Desk, call, key, subject
from rollcage.core.errors import (
    CallConflict,
    CallUnknown,
    RecordFull,
    RolloutEnded,
    RolloutMoved,
    RolloutUnknown,
    StoreRecovering,
)
from rollcage.core.ids import RunId
from rollcage.store.calls import MAX_PAYLOAD, CallEnding, CallState, Marking
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from support.waiting import eventually


@pytest.fixture
async def placed(desk: Desk) -> Desk:
    await desk.offer("s1")
    await desk.claim("r1")
    return desk


async def test_a_call_is_new_to_whoever_begins_it_first(placed: Desk) -> None:
    attempts = [f"attempt-{i}" for i in range(20)]

    begun = await asyncio.gather(*(placed.begin("r1", attempt=attempt) for attempt in attempts))

    states = [each.state for each in begun]
    assert states.count(CallState.NEW) == 1
    assert states.count(CallState.RUNNING) == 19


async def test_an_attempt_whose_answer_was_lost_may_ask_again(placed: Desk) -> None:
    first = await placed.begin("r1")

    assert await placed.begin("r1") == first


async def test_a_finished_call_is_answered_byte_for_byte(placed: Desk) -> None:
    await placed.begin("r1")
    result = bytes(range(256))
    await placed.store.calls.finish(key("r1"), "call-1", CallEnding(result, "ok"))

    again = await placed.begin("r1", attempt="attempt-2")

    assert (again.state, again.result) == (CallState.FINISHED, result)


async def test_an_empty_result_is_a_result(placed: Desk) -> None:
    await placed.begin("r1")
    await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"", "ok"))

    assert (await placed.begin("r1")).result == b""


async def test_other_arguments_under_the_same_id_are_a_conflict(placed: Desk) -> None:
    await placed.begin("r1")

    with pytest.raises(CallConflict):
        await placed.store.calls.begin(key("r1"), call(digest="h2"))


async def test_the_first_result_stands(placed: Desk) -> None:
    await placed.begin("r1")
    await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"first", "ok"))

    second = await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"second", "failed"))

    assert (second.first, second.result) == (False, b"first")


async def test_what_was_never_begun_cannot_be_finished(placed: Desk) -> None:
    with pytest.raises(CallUnknown):
        await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"", "ok"))


async def test_no_call_is_begun_after_a_verdict(placed: Desk) -> None:
    await placed.store.rollouts.decide(subject("r1"), FAILED_NODE)

    with pytest.raises(RolloutEnded) as refused:
        await placed.begin("r1")

    assert refused.value.verdict == "masked"


async def test_a_result_that_comes_after_the_verdict_is_kept_and_the_verdict_told(placed: Desk) -> None:
    await placed.begin("r1")
    await placed.store.rollouts.end(subject("r1"), FAILED_NODE)

    late = await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"late", "ok"))

    assert (late.first, late.verdict, late.cause) == (True, "masked", "node_lost")


async def test_a_call_to_a_sandbox_the_rollout_is_not_in_is_not_begun(placed: Desk) -> None:
    with pytest.raises(RolloutMoved) as refused:
        await placed.store.calls.begin(key("r1"), call(), sandbox="s0")

    assert refused.value.sandbox == "s1"
    assert (await placed.record("r1")).delivered == 0


async def test_a_rollout_nobody_claimed_begins_no_call(desk: Desk) -> None:
    with pytest.raises(RolloutUnknown):
        await desk.begin("r1")


async def test_without_its_memory_the_store_does_not_say_unknown(empty: Desk) -> None:
    with pytest.raises(StoreRecovering):
        await empty.begin("r1")


async def test_only_whoever_made_a_mark_can_take_it_back(placed: Desk) -> None:
    await placed.begin("r1", attempt="attempt-1")

    assert not await placed.store.calls.retract(key("r1"), "call-1", attempt="attempt-2")
    assert await placed.store.calls.retract(key("r1"), "call-1", attempt="attempt-1")
    assert (await placed.record("r1")).delivered == 0


async def test_a_call_that_was_taken_back_spends_no_budget(placed: Desk) -> None:
    for attempt in ("attempt-1", "attempt-2", "attempt-3"):
        assert (await placed.begin("r1", attempt=attempt)).number == 1
        await placed.store.calls.retract(key("r1"), "call-1", attempt=attempt)

    await placed.begin("r1", "call-1")
    await placed.begin("r1", "call-2")

    page = await placed.store.calls.trajectory(key("r1"))
    assert [(one.number, one.id) for one in page.items] == [(1, "call-1"), (2, "call-2")]
    assert (await placed.record("r1")).calls == 2


async def test_when_a_call_is_taken_back_those_that_began_since_move_up(placed: Desk) -> None:
    for i in range(5):
        await placed.store.calls.begin(key("r1"), call(f"call-{i}", arguments=b"%d" % i))
    await placed.store.calls.finish(key("r1"), "call-3", CallEnding(b"r3", "ok"))

    await placed.store.calls.retract(key("r1"), "call-1", attempt="attempt-1")
    await placed.store.calls.finish(key("r1"), "call-2", CallEnding(b"r2", "ok"))
    again = await placed.begin("r1", "call-3")

    page = await placed.store.calls.trajectory(key("r1"))
    assert [(each.number, each.id, each.arguments, each.result) for each in page.items] == [
        (1, "call-0", b"0", None),
        (2, "call-2", b"2", b"r2"),
        (3, "call-3", b"3", b"r3"),
        (4, "call-4", b"4", None),
    ]
    assert (again.state, again.number) == (CallState.FINISHED, 3)
    assert (await placed.begin("r1", "call-1")).number == 5


@pytest.mark.parametrize("seed", range(10))
async def test_whatever_is_begun_ended_and_taken_back_the_record_has_what_is_left(placed: Desk, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets
    calls = placed.store.calls
    # What the calls came to that stand, in the order in which they began.
    stand: dict[str, bytes | None] = {}
    for name in (f"call-{dice.randrange(30)}" for _ in range(150)):
        if name not in stand and dice.random() < 0.3:
            # Over before it is begun; what it is kept by depends on whether there was time for a look.
            sent = calls.mark(key("r1"), call(name, arguments=name.encode()), sandbox="s1", after=60)
            await asyncio.sleep(dice.choice([0, 0.002]))
            stand[name] = b"over"
            assert (await sent.begun(CallEnding(b"over", "ok", boot="b1"), within=5)).number == len(stand)
        elif name not in stand:
            await calls.begin(key("r1"), call(name, arguments=name.encode()))
            stand[name] = None
        elif stand[name] is None and dice.random() < 0.5:
            stand[name] = dice.randbytes(dice.randrange(9))
            await calls.finish(key("r1"), name, CallEnding(stand[name] or b"", "ok"))
        elif await calls.retract(key("r1"), name, attempt="attempt-1"):
            assert stand.pop(name) is None

    page = await calls.trajectory(key("r1"))
    found = [(each.number, each.id, each.arguments, each.result) for each in page.items]
    assert found == [(n, name, name.encode(), result) for n, (name, result) in enumerate(stand.items(), 1)]
    record, run = await placed.record("r1"), await placed.store.rollouts.run(RunId(TENANT, "a").key)
    assert run
    assert (record.calls, record.delivered, run.calls) == (len(stand), len(stand), len(stand))
    # Nothing else of them is left.
    fields = await placed.redis.hgetall(f"{{rollcage}}:rollout:{key('r1')}")
    ended = sum(result is not None for result in stand.values())
    assert sum(b":" in name for name in fields) == 3 * len(stand) + ended
    assert int(fields[b"bytes"]) == sum(len(name) + len(result or b"") for name, result in stand.items())


async def test_a_finished_call_cannot_be_taken_back(placed: Desk) -> None:
    await placed.begin("r1")
    await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"", "ok"))

    assert not await placed.store.calls.retract(key("r1"), "call-1", attempt="attempt-1")


async def test_a_trajectory_is_read_in_order_and_in_pages(placed: Desk) -> None:
    for i in range(5):
        await placed.store.calls.begin(key("r1"), call(f"call-{i}", arguments=b"%d" % i))
    for i in (3, 1, 0, 2):
        await placed.store.calls.finish(key("r1"), f"call-{i}", CallEnding(b"r%d" % i, "ok"))

    first = await placed.store.calls.trajectory(key("r1"), limit=3)
    rest = await placed.store.calls.trajectory(key("r1"), cursor=first.cursor, limit=3)

    calls = [*first.items, *rest.items]
    assert [each.number for each in calls] == [1, 2, 3, 4, 5]
    assert [each.arguments for each in calls] == [b"0", b"1", b"2", b"3", b"4"]
    assert [each.result for each in calls] == [b"r0", b"r1", b"r2", b"r3", None]
    assert [each.outcome for each in calls] == ["ok", "ok", "ok", "ok", None]
    assert rest.cursor is None


async def test_a_page_of_large_calls_is_short(placed: Desk) -> None:
    for i in range(4):
        await placed.store.calls.begin(key("r1"), call(f"call-{i}", arguments=bytes(3 << 20)))

    page = await placed.store.calls.trajectory(key("r1"))

    assert (len(page.items), page.cursor) == (2, "2")


async def test_a_full_record_begins_no_further_call(placed: Desk, settings: Settings) -> None:
    small = Settings(settings.url, max_calls=1)
    async with open_store(small, clock=placed.clock) as store:
        await store.calls.begin(key("r1"), call("call-1"))

        with pytest.raises(RecordFull):
            await store.calls.begin(key("r1"), call("call-2"))


async def test_what_is_too_large_to_record_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match="recorded"):
        call(arguments=bytes(MAX_PAYLOAD + 1))


async def test_the_record_expires_with_its_rollout(placed: Desk, settings: Settings) -> None:
    await placed.begin("r1")
    await placed.store.calls.finish(key("r1"), "call-1", CallEnding(b"x", "ok"))
    await placed.store.rollouts.end(subject("r1"), TRAINED)

    await assert_expiring(placed, settings)


async def test_a_call_begun_with_its_end_expires_as_well(placed: Desk, settings: Settings) -> None:
    await marking(placed).begun(CallEnding(b"x", "ok"), within=5)
    await placed.store.rollouts.end(subject("r1"), TRAINED)

    await assert_expiring(placed, settings)


@pytest.mark.parametrize("kind", ["rollout", "run"])
async def test_calls_prolong_the_record_and_the_figures_that_they_count_in(placed: Desk, kind: str) -> None:
    (name,) = [name async for name in placed.redis.scan_iter(f"{{rollcage}}:{kind}:*")]
    soon = 60_000
    await placed.redis.pexpire(name, soon)

    await marking(placed).begun(CallEnding(b"x", "ok"), within=5)

    assert await placed.redis.pttl(name) > soon


async def assert_expiring(placed: Desk, settings: Settings) -> None:
    names = [name async for name in placed.redis.scan_iter(f"*rollout:{key('r1')}*")]
    lives = [await placed.redis.pttl(name) for name in names]

    # Its record and its evidence.
    assert len(names) == 2
    assert all(0 < life <= settings.retention.total_seconds() * 1000 for life in lives)


def marking(desk: Desk, name: str = "call-1", *, after: float = 60.0, attempt: str = "attempt-1") -> Marking:
    return desk.store.calls.mark(key("r1"), call(name, attempt=attempt), sandbox="s1", after=after)


async def test_a_call_that_is_over_before_it_was_marked_is_begun_with_its_end(placed: Desk) -> None:
    begun = await marking(placed).begun(CallEnding(b"42", "ok", boot="b1", shown=2), within=5)

    (one,) = (await placed.store.calls.trajectory(key("r1"))).items
    rollout = await placed.record("r1")
    assert (begun.state, begun.number) == (CallState.KEPT, 1)
    assert (one.number, one.id, one.result, one.outcome) == (1, "call-1", b"42", "ok")
    assert rollout.calls == 1
    # Whoever asks now finds it over, as after a call that was marked first.
    again = await placed.begin("r1", attempt="attempt-2")
    assert (again.state, again.result, again.boot) == (CallState.FINISHED, b"42", "b1")


async def test_a_call_that_was_marked_late_is_dated_by_when_it_was_sent(placed: Desk) -> None:
    sent = marking(placed)
    await asyncio.sleep(0.02)

    begun = await sent.begun(CallEnding(b"", "ok"), within=5)

    (one,) = (await placed.store.calls.trajectory(key("r1"))).items
    assert one.finished_at
    assert one.begun_at == begun.begun_at
    assert one.finished_at - one.begun_at >= timedelta(milliseconds=20)


async def test_a_call_that_takes_longer_is_marked_while_it_runs(placed: Desk) -> None:
    sent = marking(placed, after=0.0)

    async def marked() -> bool:
        return bool((await placed.store.calls.trajectory(key("r1"))).items)

    await eventually(marked)
    begun = await sent.begun(CallEnding(b"42", "ok"), within=5)

    # Its end is still to be kept.
    assert begun.state is CallState.NEW
    assert (await placed.store.calls.trajectory(key("r1"))).items[0].result is None


async def test_the_end_of_a_call_that_somebody_else_began_is_not_kept_as_ours(placed: Desk) -> None:
    await placed.begin("r1", attempt="attempt-2")

    begun = await marking(placed).begun(CallEnding(b"42", "ok"), within=5)

    assert begun.state is CallState.RUNNING
    assert (await placed.begin("r1")).result is None


async def test_a_rollout_that_has_ended_keeps_no_end_of_a_later_call(placed: Desk) -> None:
    await placed.store.rollouts.end(subject("r1"), TRAINED)

    with pytest.raises(RolloutEnded):
        await marking(placed).begun(CallEnding(b"42", "ok"), within=5)

    assert not (await placed.store.calls.trajectory(key("r1"))).items


async def test_a_call_that_was_not_sent_is_never_marked(placed: Desk) -> None:
    marking(placed, after=0.01).drop()
    await asyncio.sleep(0.05)

    assert (await placed.record("r1")).calls == 0
