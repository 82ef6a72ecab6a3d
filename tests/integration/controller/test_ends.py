"""Whatever ends is settled: with a verdict where a call may have run, without a word where none has."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rollcage.controller.audit import Audit
from rollcage.controller.deaths import Deaths
from rollcage.controller.sentence import Sentence
from rollcage.core.endings import EndCause, Ending
from rollcage.core.errors import NotLeader
from rollcage.core.ids import RunId
from rollcage.core.verdict_words import Cause, Word
from rollcage.store.records import State
from support.environments import environment
from support.pools import Pools, key, until

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from rollcage.store.store import Store


async def test_a_sandbox_is_deleted_with_its_rollout(store: Store) -> None:
    pools = Pools(store, warm=2)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.finish("r1")
        await until(lambda: _gone(pools, sandbox.name), "the deletion")
        await pools.ready(2)
        await until(lambda: _spent(pools, 0), "the tick")


async def test_what_is_still_to_be_done_to_a_sandbox_that_has_gone_harms_nobody(store: Store) -> None:
    pools = Pools(store, warm=1)
    async with pools.keeper() as keeper:
        await pools.ready(1)

        assert not keeper.hands.label("gone", key("r1"))
        keeper.hands.remove("gone", "spent")

        await pools.claim("r1")
        await pools.ready(1)


@pytest.mark.parametrize("by", ["us", "somebody else"])
async def test_a_sandbox_that_is_deleted_is_no_start_that_failed(store: Store, by: str) -> None:
    pools = Pools(store, warm=1)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        if by == "us":
            await pools.finish("r1")
        else:
            await pools.call("r1")
            pools.source.vanish(sandbox.name)
        await until(lambda: _gone(pools, sandbox.name), "the deletion")
        await pools.ready(1)

    labels = {"environment": "small", "reason": "StartFailed"}
    assert not pools.metrics.registry.get_sample_value("rollcage_start_failures_total", labels)


@pytest.mark.parametrize(
    ("ending", "word", "cause"),
    [
        pytest.param(Ending(EndCause.OUT_OF_MEMORY, 137), "trainable", "out_of_memory", id="its own memory limit"),
        pytest.param(Ending(EndCause.EVICTED), "masked", "evicted", id="evicted"),
        pytest.param(Ending(EndCause.EXITED, 86), "trainable", "toolserver_crippled", id="crippled by the model"),
        pytest.param(Ending(EndCause.EXITED, 2), "masked", "toolserver_died", id="died for no reason"),
    ],
)
async def test_a_death_after_a_call_is_a_verdict(store: Store, ending: Ending, word: str, cause: str) -> None:
    pools = Pools(store, warm=1)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.call("r1")
        pools.source.end(sandbox.name, ending)
        await until(lambda: _ended(pools, "r1"), "the verdict")
        await until(lambda: _gone(pools, sandbox.name), "the deletion")

    record = await pools.record("r1")
    assert record.verdict
    assert (record.verdict.word, record.verdict.cause, record.verdict.by) == (word, cause, "controller")
    assert pools.metrics.verdicts.at("small", Word(word), Cause(cause))._value.get() == 1  # noqa: SLF001 - no other way to read it
    (evidence,) = await store.rollouts.evidence(key("r1"))
    assert json.loads(evidence)["ending"]["cause"] == ending.cause


async def test_a_death_before_any_call_moves_the_rollout(store: Store) -> None:
    pools = Pools(store, warm=2)
    async with pools.keeper():
        first = await pools.claim("r1")
        pools.source.end(first.name, Ending(EndCause.EVICTED))
        await until(lambda: _gone(pools, first.name), "the deletion")
        second = await pools.claim("r1")

    assert second.name != first.name
    assert (await pools.record("r1")).verdict is None


async def test_a_pod_that_somebody_deletes_masks_its_rollout(store: Store) -> None:
    pools = Pools(store, warm=1)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.call("r1")
        pools.source.vanish(sandbox.name)
        await until(lambda: _ended(pools, "r1"), "the verdict")

    record = await pools.record("r1")
    assert record.verdict
    assert record.verdict.word == "masked"


async def test_idle_sandboxes_that_went_while_nobody_looked_are_given_to_nobody(store: Store) -> None:
    pools = Pools(store, warm=3)
    async with pools.keeper():
        await pools.ready(3)
        await store.reservations.reserve(
            RunId("acme", "run"), environment="small", reservation="ahead", count=1, ttl=timedelta(minutes=5), quota=1
        )
        await until(lambda: _set_aside(pools, 1), "the reservation")
        await pools.ready(3)
    went = await store.pools.offered("small")
    assert len(went) == 4
    for name in went:
        pools.source.vanish(name)

    async with pools.keeper():
        await until(lambda: _all_there(pools, 4), "the pool")
        assert (await pools.claim("r1")).name not in went


async def test_a_pod_that_went_while_nobody_looked_masks_its_rollout(store: Store) -> None:
    pools = Pools(store, warm=1)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.call("r1")
    pools.source.vanish(sandbox.name)
    async with pools.keeper():
        await until(lambda: _ended(pools, "r1"), "the verdict")

    record = await pools.record("r1")
    assert record.verdict
    assert (record.verdict.word, record.verdict.cause) == ("masked", "unknown")


async def test_a_first_call_that_found_nobody_there_may_go_elsewhere(store: Store) -> None:
    pools = Pools(store, warm=1)
    async with pools.keeper():
        await pools.ready(1)
        leader = store.as_leader(1)
        sentence = Sentence(store, leader, pools.metrics)
        audit = Audit(store, leader, Deaths(pools.source, store, leader, sentence), sentence, every=timedelta())
    await pools.claim("r1")
    await pools.call("r1")
    verdicts = []
    for moment in range(2):
        await audit.run_if_due({}, ["small"], set(), now=moment)
        verdicts.append((await pools.record("r1")).verdict)

    assert verdicts[0] is None
    assert verdicts[1]


async def test_a_silent_sandbox_on_a_silent_node_masks_its_rollout_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollcage.controller.hands._DOUBT_SECONDS", 0.01)
    pools = Pools(store, warm=1)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.call("r1")
        pools.toolservers.silent.add(sandbox.name)
        pools.source.silence_node("node-1")
        await until(lambda: _ended(pools, "r1"), "the verdict")

    record = await pools.record("r1")
    assert record.verdict
    assert (record.verdict.word, record.verdict.cause) == ("masked", "node_lost")


async def test_a_sandbox_that_answers_from_a_silent_node_goes_on(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollcage.controller.hands._DOUBT_SECONDS", 0.01)
    pools = Pools(store, warm=1)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.call("r1")
        pools.source.silence_node("node-1")
        await asyncio.sleep(0.5)

    assert (await pools.record("r1")).verdict is None
    assert sandbox.name in pools.source.sandboxes


async def test_a_rollout_that_nobody_calls_for_any_more_is_abandoned(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollcage.controller.audit._CALL_MARGIN", -environment().spec.limits.max_timeout_seconds)
    pools = Pools(store, warm=1)
    await pools.want(environment(pool={"warm": 1}, budgets={"idleSeconds": 1}))
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await until(lambda: _ended(pools, "r1"), "the verdict")
        await until(lambda: _gone(pools, sandbox.name), "the deletion")

    record = await pools.record("r1")
    assert record.verdict
    assert (record.verdict.word, record.verdict.cause) == ("abandoned", "trainer_silent")


async def test_a_new_leader_takes_everything_over_and_makes_nothing(store: Store) -> None:
    pools = Pools(store, warm=5)
    async with pools.keeper():
        await pools.claim("r1")
        await pools.ready(5)
    before = set(pools.source.sandboxes)
    async with pools.keeper():
        await asyncio.sleep(0.3)
        await pools.ready(5)

    assert set(pools.source.sandboxes) == before


async def test_a_leader_that_was_deposed_stops(store: Store) -> None:
    pools = Pools(store, warm=3)
    async with pools.keeper():
        await pools.ready(3)
        async with pools.keeper():
            await pools.claim("r1")
            await pools.finish("r1")
            await pools.ready(3)

    with pytest.raises(NotLeader):
        await store.as_leader(1).pools.withdraw(next(iter(pools.source.sandboxes)))


async def test_a_leader_killed_at_any_point_leaves_and_doubles_nothing(store: Store) -> None:
    pools = Pools(store, warm=12)
    for moment in range(1, 16):
        async with pools.keeper():
            await asyncio.sleep(0.013 * moment)
        await _consistent(pools, most=12)
    async with pools.keeper():
        await pools.ready(12)
        await asyncio.sleep(0.2)

    assert len(pools.source.sandboxes) == 12


class TestAnEmptiedStore:
    async def test_gets_its_bindings_back_from_the_sandboxes(self, store: Store, redis: Redis) -> None:
        pools = Pools(store, warm=4)
        async with pools.keeper():
            sandbox = await pools.claim("r1")
            await pools.call("r1")
            await pools.ready(4)
            await redis.flushall()
            again = await pools.claim("r1")
            await pools.ready(4)

        assert again.name == sandbox.name
        record = await pools.record("r1")
        assert record.delivered == 1
        assert len(pools.source.sandboxes) == 5

    async def test_gives_a_sandbox_in_use_to_nobody_else(self, store: Store, redis: Redis) -> None:
        pools = Pools(store, warm=3)
        async with pools.keeper():
            used = {(await pools.claim(f"r{number}")).name for number in range(3)}
            await pools.ready(3)
            await redis.flushall()
            others = {(await pools.claim(f"new-{number}")).name for number in range(3)}

        assert not used & others

    async def test_that_is_told_of_two_homes_masks_the_rollout(
        self, store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rollcage.controller.recovering._PAUSE", 0.01)
        pools = Pools(store, warm=2)
        async with pools.keeper():
            first = await pools.claim("r1")
            await pools.call("r1")
            pools.toolservers.silent.add(first.name)
            await redis.flushall()
            second = await pools.claim("r1")
            assert second.name != first.name
            pools.toolservers.silent.clear()
            await until(lambda: _ended(pools, "r1"), "the verdict")
            await until(lambda: _gone(pools, first.name), "the first to go")
            await until(lambda: _gone(pools, second.name), "the second to go")

        record = await pools.record("r1")
        assert record.verdict
        assert (record.verdict.word, record.verdict.cause) == ("masked", "ambiguous_owner")


async def _consistent(pools: Pools, *, most: int) -> None:
    assert len(pools.source.sandboxes) <= most


async def _set_aside(pools: Pools, number: int) -> bool:
    return (await pools.counts()).set_aside == number


async def _all_there(pools: Pools, number: int) -> bool:
    offered = await pools.store.pools.offered("small")
    return len(offered) == number and offered <= pools.source.sandboxes.keys()


async def _gone(pools: Pools, name: str) -> bool:
    return name not in pools.source.sandboxes


async def _ended(pools: Pools, rollout: str) -> bool:
    return (await pools.record(rollout)).state is State.ENDED


async def _spent(pools: Pools, number: int) -> bool:
    return (await pools.counts()).spent == number
