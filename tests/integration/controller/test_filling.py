"""Pools are filled to what is wanted, and never beyond, whatever goes wrong on the way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rollcage.core.endings import EndCause, Ending
from rollcage.sandboxes.fake.fate import Answer, Fate, always, image_missing, in_turn, unschedulable
from rollcage.sandboxes.source import Phase
from support.environments import environment
from support.pools import SOON, Pools, until

if TYPE_CHECKING:
    from rollcage.store.store import Store

# Some looks, to see that nothing more happens.
A_WHILE = 0.3


async def test_a_pool_is_filled_to_exactly_what_is_wanted(store: Store) -> None:
    pools = Pools(store, warm=30)
    async with pools.keeper():
        await pools.ready(30)
        await asyncio.sleep(A_WHILE)

    assert len(pools.source.sandboxes) == 30
    assert b'rollcage_pool_sandboxes{environment="small",state="ready"} 30.0' in pools.metrics.exposition()
    assert len(pools.asked("create")) == 30
    assert pools.asked("delete") == []


async def test_a_watch_that_lags_makes_nothing_twice(store: Store) -> None:
    pools = Pools(store, warm=10)
    pools.source.stall()
    async with pools.keeper() as keeper:
        await until(lambda: _true(len(pools.asked("create")) >= keeper.hands.pace.starts), "the first creations")
        await asyncio.sleep(A_WHILE)
        assert len(pools.source.sandboxes) <= 10
        pools.source.catch_up()
        pools.source.lag = 0.2
        await pools.ready(10)

    assert len(pools.asked("create")) == 10


@pytest.mark.parametrize("answer", [Answer.LOST, Answer.UNHEARD])
async def test_a_creation_without_an_answer_is_repeated_under_its_name(
    store: Store, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollcage.controller.view.ANSWER_SECONDS", 0.1)
    monkeypatch.setattr("rollcage.controller.hands._REST_SECONDS", 0.01)
    pools = Pools(store, fates=in_turn(Fate(answer, starts_after=0.01), then=SOON), warm=3)
    async with pools.keeper():
        await pools.ready(3)

    assert len(pools.source.sandboxes) == 3
    assert len(set(pools.asked("create"))) == 3


async def test_starting_sandboxes_are_bounded(store: Store) -> None:
    pools = Pools(store, fates=always(Fate(starts_after=600.0)), warm=500)
    async with pools.keeper() as keeper:
        await until(lambda: _true(bool(pools.source.sandboxes)), "the first creation")
        await asyncio.sleep(A_WHILE)

    assert len(pools.source.sandboxes) == keeper.hands.pace.starts


async def test_what_no_node_has_room_for_is_held_and_not_churned(store: Store) -> None:
    pools = Pools(store, fates=in_turn(SOON, then=unschedulable()), warm=50)
    async with pools.keeper():
        await until(lambda: _fares(pools, "Unschedulable"), "the reason")
        made = set(pools.source.sandboxes)
        await asyncio.sleep(A_WHILE)
        assert set(pools.source.sandboxes) == made

    assert pools.asked("delete") == []


async def test_an_image_that_cannot_be_pulled_is_tried_once_and_reported(store: Store) -> None:
    pools = Pools(store, fates=always(image_missing("no such image: nope")), warm=50)
    async with pools.keeper():
        await until(lambda: _fares(pools, "ImagePullFailed"), "the reason")
        made = len(pools.source.sandboxes)
        await asyncio.sleep(A_WHILE)

    assert len(pools.source.sandboxes) == made
    assert pools.recipes.fares["small"].message == "no such image: nope"
    assert not pools.recipes.fares["small"].healthy


@pytest.mark.parametrize(("answer", "reason"), [(Answer.OVER_QUOTA, "QuotaExceeded"), (Answer.REJECTED, "Rejected")])
async def test_a_refusal_is_reported_and_not_repeated_at_once(store: Store, answer: Answer, reason: str) -> None:
    pools = Pools(store, fates=always(Fate(answer)), warm=50)
    async with pools.keeper():
        await until(lambda: _fares(pools, reason), "the reason")
        asked = len(pools.asked("create"))
        await asyncio.sleep(A_WHILE)

    assert len(pools.asked("create")) == asked


async def test_starts_that_fail_are_backed_off_from_and_one_that_works_ends_it(store: Store) -> None:
    failing = Fate(starts_after=0.01, start_failure=Ending(EndCause.START_FAILED, message="no such program"))
    pools = Pools(store, fates=in_turn(failing, failing, failing, failing, then=SOON), warm=8)
    async with pools.keeper():
        await until(lambda: _fares(pools, "StartFailed"), "the reason")
        await pools.ready(8)
        await until(lambda: _fares(pools, "Full"), "the all-clear")


async def test_a_set_up_that_fails_is_the_environments_error(store: Store) -> None:
    pools = Pools(store, warm=3)
    pools.toolservers.setup = {"state": "failed", "output": "pip: not found"}
    async with pools.keeper():
        await until(lambda: _fares(pools, "SetupFailed"), "the reason")

        assert pools.recipes.fares["small"].message == "pip: not found"
        assert (await pools.counts()).ready == 0


async def test_a_pool_that_is_made_smaller_loses_idle_sandboxes_only(store: Store) -> None:
    pools = Pools(store, warm=6)
    async with pools.keeper():
        await pools.ready(6)
        claimed = await pools.claim("r1")
        await pools.want(environment(pool={"warm": 2}))
        await pools.ready(2)
        await until(lambda: _true(len(pools.source.sandboxes) == 3), "the deletions")

    assert claimed.name in pools.source.sandboxes


async def test_a_new_recipe_rolls_the_idle_sandboxes_and_never_the_claimed_ones(store: Store) -> None:
    pools = Pools(store, warm=4)
    async with pools.keeper():
        await pools.ready(4)
        claimed = await pools.claim("r1")
        await pools.ready(4)
        changed = environment(pool={"warm": 4}, env={"NEW": "yes"})
        await pools.want(changed)
        template = pools.source.template(changed)

        def rolled() -> bool:
            others = [one for one in pools.source.sandboxes.values() if one.name != claimed.name]
            return len(others) == 4 and all(one.template == template for one in others)

        await until(lambda: _true(rolled()), "new sandboxes")

    assert pools.source.sandboxes[claimed.name].template != template


async def test_environments_are_filled_side_by_side(store: Store) -> None:
    pools = Pools(store, warm=20)
    await pools.want(environment("large", pool={"warm": 40}), environment("tiny", pool={"warm": 2}))
    async with pools.keeper():
        await pools.ready(2, "tiny")
        assert (await pools.counts("large")).ready < 40
        await pools.ready(40, "large")


async def test_a_removed_environment_keeps_only_what_is_in_use(store: Store) -> None:
    pools = Pools(store, warm=3)
    async with pools.keeper():
        await pools.ready(3)
        claimed = await pools.claim("r1")
        await pools.want()
        await until(lambda: _true(set(pools.source.sandboxes) == {claimed.name}), "the idle ones to go")


async def test_a_claim_finds_a_sandbox_though_none_is_kept_warm(store: Store) -> None:
    pools = Pools(store, warm=0)
    async with pools.keeper():
        sandbox = await pools.claim("r1")

    assert set(pools.source.sandboxes) == {sandbox.name}


async def test_no_more_sandboxes_than_allowed_though_more_wait(store: Store) -> None:
    pools = Pools(store, warm=0, maxPods=3)
    async with pools.keeper():
        claims = [asyncio.create_task(pools.claim(f"r{number}")) for number in range(6)]
        await until(lambda: _true(sum(claim.done() for claim in claims) == 3), "three claims")
        await asyncio.sleep(A_WHILE)
        assert len(pools.source.sandboxes) == 3

        for number, claim in enumerate(claims):
            if claim.done():
                await pools.finish(f"r{number}")
        await asyncio.gather(*claims)

    assert len({claim.result().name for claim in claims}) == 6


async def test_a_full_pool_whose_rollouts_all_end_is_renewed_within_its_room(store: Store) -> None:
    pools = Pools(store, warm=40, maxPods=40)
    at_once: list[int] = []

    async def renewed() -> bool:
        at_once.append(len(pools.source.sandboxes))
        return (await pools.counts()).ready == 40

    async with pools.keeper():
        await pools.ready(40)
        first = {(await pools.claim(f"r{number}")).name for number in range(40)}
        for number in range(40):
            await pools.finish(f"r{number}")
        await until(renewed, "40 others")

    assert not first & set(pools.source.sandboxes)
    assert max(at_once) <= 40


async def test_sandboxes_on_a_silent_node_are_given_to_nobody(store: Store) -> None:
    pools = Pools(store, warm=3)
    async with pools.keeper():
        await pools.ready(3)
        first = set(pools.source.sandboxes)
        pools.source.silence_node("node-1")
        await until(lambda: _true(not first & set(pools.source.sandboxes)), "others")

    assert all(one.phase is not Phase.ENDED for one in pools.source.sandboxes.values())


async def _true(value: bool) -> bool:  # noqa: FBT001 - the value itself
    return value


async def _fares(pools: Pools, reason: str) -> bool:
    told = pools.recipes.fares.get("small")
    return told is not None and told.reason == reason
