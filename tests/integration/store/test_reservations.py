"""What a reservation promises, on a real Redis."""

import asyncio
from datetime import timedelta

import pytest

from integration.store.desk import TENANT, Desk
from rollcage.core.errors import ClaimTimedOut, OverQuota
from rollcage.core.ids import RunId
from rollcage.store.reservations import MAX_RESERVED, Reservation

AT_ONCE = timedelta()
TTL = timedelta(minutes=5)


async def reserve(
    desk: Desk, run: str, count: int, *, name: str = "step-1", quota: int = 1000, tenant: str = TENANT
) -> Reservation:
    return await desk.store.reservations.reserve(
        RunId(tenant, run), environment="py", reservation=name, count=count, ttl=TTL, quota=quota
    )


async def test_what_is_ready_is_set_aside_at_once(desk: Desk) -> None:
    await desk.offer("s1", "s2", "s3")

    held = await reserve(desk, "a", 2)

    assert (held.count, held.left, held.set_aside) == (2, 2, 2)
    assert (await desk.store.pools.counts("py")).ready == 1


async def test_other_runs_do_not_get_what_is_set_aside(desk: Desk) -> None:
    await desk.offer("s1")
    await reserve(desk, "a", 1)

    with pytest.raises(ClaimTimedOut):
        await desk.claim("r1", "b", wait=AT_ONCE)

    assert await desk.claim("r2", "a", wait=AT_ONCE) == "s1"


async def test_what_becomes_ready_is_set_aside_too(desk: Desk) -> None:
    await reserve(desk, "a", 1)

    await desk.offer("s1", "s2")

    counts = await desk.store.pools.counts("py")
    assert (counts.set_aside, counts.ready) == (1, 1)


async def test_a_reservation_is_demand_until_it_is_filled(desk: Desk) -> None:
    await reserve(desk, "a", 3)
    assert (await desk.store.pools.counts("py")).demand == 3

    await desk.offer("s1")

    assert (await desk.store.pools.counts("py")).demand == 2


async def test_a_waiter_with_a_reservation_is_not_counted_twice(desk: Desk) -> None:
    await reserve(desk, "a", 2)
    task = asyncio.create_task(desk.claim("r1", "a"))
    await desk.until_waiting(1)

    assert (await desk.store.pools.counts("py")).demand == 2
    await desk.offer("s1")
    await task
    assert (await desk.store.pools.counts("py")).demand == 1


async def test_who_already_waits_is_part_of_what_is_reserved(desk: Desk) -> None:
    task = asyncio.create_task(desk.claim("r1", "a"))
    await desk.until_waiting(1)

    held = await reserve(desk, "a", 3)

    assert held.left == 2
    assert (await desk.store.pools.counts("py")).demand == 3
    await desk.offer("s1")
    await task


async def test_a_waiter_that_gives_up_gives_its_reservation_back(desk: Desk) -> None:
    await reserve(desk, "a", 1)
    with pytest.raises(ClaimTimedOut):
        await desk.claim("r1", "a", wait=timedelta(milliseconds=50))

    await desk.offer("s1")

    assert (await desk.store.pools.counts("py")).set_aside == 1


async def test_claims_use_a_reservation_up(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await reserve(desk, "a", 1)
    await desk.claim("r1", "a")

    await desk.claim("r2", "b", wait=AT_ONCE)

    assert (await desk.store.pools.counts("py")).reserved == 0


async def test_waiters_and_reservations_of_other_runs_take_turns(desk: Desk) -> None:
    task = asyncio.create_task(desk.claim("r1", "b"))
    await desk.until_waiting(1)
    await reserve(desk, "a", 100)

    await desk.offer("s1", "s2")

    assert await task == "s1"
    assert (await desk.store.pools.counts("py")).set_aside == 1


async def test_an_expired_reservation_lets_its_sandboxes_go(desk: Desk) -> None:
    await desk.offer("s1")
    await reserve(desk, "a", 5)
    desk.clock.advance(TTL)

    assert await desk.claim("r1", "b", wait=AT_ONCE) == "s1"
    assert (await desk.store.pools.counts("py")).reserved == 0


async def test_the_same_reservation_again_changes_nothing(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await reserve(desk, "a", 2)
    await desk.claim("r1", "a")

    again = await reserve(desk, "a", 2)

    assert (again.count, again.left) == (2, 1)


async def test_the_next_steps_reservation_takes_the_place_of_the_last(desk: Desk) -> None:
    await reserve(desk, "a", 5)

    await reserve(desk, "a", 2, name="step-2")

    assert (await desk.store.pools.counts("py")).reserved == 2


async def test_a_new_reservation_keeps_what_was_set_aside_for_the_last(desk: Desk) -> None:
    await reserve(desk, "b", 2)
    await desk.offer("s1")
    await reserve(desk, "a", 2)
    await desk.offer("s2", "s3")

    held = [await reserve(desk, "a", count, name=f"step-{count}") for count in (3, 1)]

    assert [each.set_aside for each in held] == [1, 1]


async def test_what_a_smaller_reservation_does_not_need_is_let_go(desk: Desk) -> None:
    await desk.offer("s1", "s2", "s3")
    await reserve(desk, "a", 3)

    held = await reserve(desk, "a", 1, name="step-2")

    assert (held.left, held.set_aside) == (1, 1)
    assert (await desk.store.pools.counts("py")).ready == 2


async def test_a_cancelled_reservation_lets_its_sandboxes_go(desk: Desk) -> None:
    await desk.offer("s1")
    await reserve(desk, "a", 2)

    await desk.store.reservations.cancel(RunId(TENANT, "a"), environment="py")

    counts = await desk.store.pools.counts("py")
    assert (counts.ready, counts.reserved, counts.demand) == (1, 0, 0)


async def test_a_tenants_runs_share_one_quota(desk: Desk) -> None:
    await reserve(desk, "a", 6, quota=10)

    with pytest.raises(OverQuota) as refused:
        await reserve(desk, "b", 5, quota=10)

    assert (refused.value.wanted, refused.value.held, refused.value.quota) == (5, 6, 10)
    await reserve(desk, "b", 5, quota=10, tenant="other")
    assert (await desk.store.pools.counts("py")).reserved == 11


async def test_a_withdrawn_sandbox_that_was_set_aside_is_wanted_again(desk: Desk) -> None:
    await desk.offer("s1")
    await reserve(desk, "a", 1)

    await desk.leader.pools.withdraw("s1")

    counts = await desk.store.pools.counts("py")
    assert (counts.set_aside, counts.demand) == (0, 1)


async def test_a_withdrawn_sandbox_that_was_set_aside_is_replaced_from_what_lies_ready(desk: Desk) -> None:
    await desk.offer("s1")
    await reserve(desk, "a", 1)
    await desk.offer("s2")

    await desk.leader.pools.withdraw("s1")

    counts = await desk.store.pools.counts("py")
    assert (counts.set_aside, counts.ready) == (1, 0)


async def test_absurd_reservations_are_refused(desk: Desk) -> None:
    with pytest.raises(ValueError, match="can be reserved"):
        await reserve(desk, "a", MAX_RESERVED + 1)
