"""What the controller's side promises, on a real Redis."""

import asyncio
from contextlib import aclosing
from datetime import timedelta

import pytest

from integration.store.desk import FAILED_NODE, TRAINED, Desk, key, sandbox, subject
from rollcage.core.errors import ClaimTimedOut, NotLeader
from rollcage.store.pools import Counts, Departure, Fate
from rollcage.store.records import State
from rollcage.store.wakes import EVERYBODY

AT_ONCE = timedelta()


async def test_a_sandbox_is_ready_once_however_often_it_is_offered(desk: Desk) -> None:
    await desk.offer("s1", "s1", "s1")

    assert (await desk.store.pools.counts("py")).ready == 1


async def test_a_sandbox_that_was_ever_bound_is_never_offered_again(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    assert await desk.leader.pools.offer(sandbox("s1")) is Fate.BOUND
    await desk.store.rollouts.end(subject("r1"), TRAINED)

    assert await desk.leader.pools.offer(sandbox("s1")) is Fate.SPENT
    assert (await desk.store.pools.counts("py")).ready == 0


async def test_a_withdrawn_sandbox_is_given_to_nobody(desk: Desk) -> None:
    await desk.offer("s1")

    gone = [await desk.leader.pools.withdraw("s1") for _ in range(2)]

    assert all(each.was_idle for each in gone)
    with pytest.raises(ClaimTimedOut):
        await desk.claim("r1", wait=AT_ONCE)


async def test_a_sandbox_in_use_is_not_withdrawn(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")

    gone = await desk.leader.pools.withdraw("s1")

    assert (gone.was_idle, gone.rollout) == (False, key("r1"))
    assert await desk.claim("r1") == "s1"


async def test_an_offer_that_comes_after_the_withdrawal_is_too_late(desk: Desk) -> None:
    await desk.leader.pools.withdraw("s1")

    assert await desk.leader.pools.offer(sandbox("s1")) is Fate.WITHDRAWN


async def test_claims_and_withdrawals_never_get_the_same_sandbox(desk: Desk) -> None:
    names = [f"s{i}" for i in range(200)]
    await asyncio.gather(*(desk.offer(name) for name in names))

    async def claim(rollout: str) -> str | None:
        try:
            return await desk.claim(rollout, wait=AT_ONCE)
        except ClaimTimedOut:
            return None

    async def withdraw(name: str) -> str | None:
        return name if (await desk.leader.pools.withdraw(name)).was_idle else None

    # In turns, so that both have their share.
    turns = [turn for i, name in enumerate(names) for turn in (claim(f"r{i}"), withdraw(name))]
    answers = await asyncio.gather(*turns)

    claimed, withdrawn = set(answers[::2]) - {None}, set(answers[1::2]) - {None}
    assert claimed
    assert withdrawn
    assert claimed | withdrawn == set(names)
    assert not claimed & withdrawn


async def test_a_dead_sandbox_nothing_had_reached_frees_its_rollout(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")

    gone = await desk.leader.pools.died("s1")
    await desk.offer("s2")

    assert (gone.departure, gone.rollout) == (Departure.VACATED, key("r1"))
    assert await desk.claim("r1") == "s2"


async def test_a_dead_sandbox_that_a_call_may_have_reached_is_for_a_verdict(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.begin("r1")

    gone = await desk.leader.pools.died("s1")

    assert (gone.departure, gone.rollout) == (Departure.DELIVERED, key("r1"))
    assert (await desk.record("r1")).state is State.BOUND


async def test_a_dead_idle_sandbox_is_withdrawn(desk: Desk) -> None:
    await desk.offer("s1")

    assert (await desk.leader.pools.died("s1")).departure is Departure.WITHDRAWN


async def test_counts_tell_where_everything_is(desk: Desk) -> None:
    await desk.offer("s1", "s2", "s3")
    await desk.claim("r1")
    await desk.claim("r2")
    await desk.store.rollouts.end(subject("r2"), TRAINED)

    assert await desk.store.pools.counts("py") == Counts(
        ready=1, set_aside=0, claimed=1, waiting=0, reserved=0, spent=1
    )


async def test_environments_do_not_share_sandboxes(desk: Desk) -> None:
    await desk.offer("s1")

    assert (await desk.store.pools.counts("go")).ready == 0


async def test_all_bindings_are_found_page_by_page(desk: Desk) -> None:
    await desk.offer(*(f"s{i}" for i in range(7)))
    for i in range(7):
        await desk.claim(f"r{i}")

    found, cursor = [], None
    while True:
        page = await desk.store.pools.bindings("py", cursor=cursor, limit=3)
        found += [each.subject for each in page.items]
        cursor = page.cursor
        if cursor is None:
            break

    assert found == [subject(f"r{i}") for i in range(7)]


async def test_rollouts_left_alone_are_found_by_how_long(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await desk.claim("r1")
    await desk.claim("r2")
    desk.clock.advance(timedelta(minutes=9))
    await desk.begin("r2")
    desk.clock.advance(timedelta(minutes=1))

    idle = await desk.store.pools.idle("py", since=timedelta(minutes=10))

    assert [each.subject for each in idle] == [subject("r1")]


async def test_a_rollout_whose_sandbox_died_under_it_is_still_found_when_left_alone(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.leader.pools.died("s1")
    desk.clock.advance(timedelta(minutes=10))

    (idle,) = await desk.store.pools.idle("py", since=timedelta(minutes=10))
    await desk.store.rollouts.end(idle.subject, FAILED_NODE)

    assert await desk.store.pools.idle("py", since=timedelta()) == ()


async def test_used_sandboxes_are_listed_until_they_are_deleted(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.store.rollouts.end(subject("r1"), TRAINED)

    assert await desk.store.pools.spent("py") == ("s1",)
    await desk.leader.pools.forget("s1", environment="py")
    assert await desk.store.pools.spent("py") == ()


async def test_fates_tell_each_sandboxs_place_in_life(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.leader.pools.withdraw("s2")

    fates = await desk.store.pools.fates(["s1", "s2", "s3"])

    assert {name: one.fate for name, one in fates.items()} == {"s1": Fate.IDLE, "s2": Fate.WITHDRAWN}


async def test_a_deposed_leader_can_change_nothing(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    old, new = desk.store.as_leader(1), desk.store.as_leader(2)
    await new.pools.offer(sandbox("s2"))
    before = await desk.store.pools.counts("py")

    attempts = [
        old.pools.offer(sandbox("s3")),
        old.pools.withdraw("s2"),
        old.pools.died("s1"),
        old.pools.forget("s1", environment="py"),
        old.recovery.begin("g2", force=True),
        old.recovery.complete("g1"),
        old.recovery.restore(subject("r9"), sandbox("s9"), may_have_run=True),
        desk.store.rollouts.end(subject("r1"), FAILED_NODE, leader=1),
        desk.store.rollouts.decide(subject("r1"), FAILED_NODE, leader=1),
        desk.store.rollouts.attest(key("r1"), "{}", leader=1),
    ]
    refusals = await asyncio.gather(*attempts, return_exceptions=True)

    assert [type(refusal) for refusal in refusals] == [NotLeader] * len(attempts)
    assert await desk.store.pools.counts("py") == before


async def test_a_refused_leader_learns_who_leads(desk: Desk) -> None:
    await desk.store.as_leader(7).pools.withdraw("s1")

    with pytest.raises(NotLeader) as refused:
        await desk.offer("s2")

    assert (refused.value.epoch, refused.value.leader) == (1, 7)


async def test_a_change_in_demand_is_told(desk: Desk) -> None:
    async with aclosing(desk.store.changes()) as changes:
        assert await anext(changes) == EVERYBODY
        task = asyncio.create_task(desk.claim("r1"))

        assert await anext(changes) == "py"
    await desk.offer("s1")
    await task
