"""What a leader sees of its pools, and what it does to them, is counted."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rollcage.controller.service import alone, serve
from rollcage.core.endings import EndCause, Ending
from rollcage.core.ids import RunId
from rollcage.sandboxes.fake.fate import Answer, Fate, always
from support.counts import Counts, sees
from support.environments import environment
from support.pools import QUICK, Pools, until

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from rollcage.store.store import Store


@sees("pool_sandboxes", "pool_refills", "sandbox_start_seconds", "queue_length")
async def test_a_pool_is_measured_from_all_sides(store: Store) -> None:
    pools = Pools(store, warm=4)
    counts = Counts(pools.metrics)
    async with pools.keeper():
        await pools.ready(4)
        await pools.claim("r1")
        await store.reservations.reserve(
            RunId("acme", "run"), environment="small", reservation="step-1", count=2, ttl=timedelta(minutes=1), quota=9
        )
        for state, number in {"wanted": 4, "claimed": 1, "reserved": 2, "starting": 0}.items():
            await _shows(counts, number, "pool_sandboxes", environment="small", state=state)
    assert counts("pool_sandboxes", environment="small", state="ready") >= 3
    assert counts("pool_refills_total", environment="small") >= 4
    assert counts("sandbox_start_seconds_count", environment="small") >= 4


@sees("queue_length", "pool_sandboxes")
async def test_those_in_line_and_those_on_their_way_are_measured(store: Store) -> None:
    pools = Pools(store, fates=always(Fate(starts_after=600.0)), warm=1)
    counts = Counts(pools.metrics)
    async with pools.keeper():
        waiting = asyncio.create_task(pools.claim("r1", wait=30))
        await _shows(counts, 1, "queue_length", environment="small")
        await until(lambda: _at_least(1, counts, "pool_sandboxes", environment="small", state="starting"))
        waiting.cancel()


@sees("start_failures")
@pytest.mark.parametrize(
    ("fate", "reason"),
    [
        (Fate(Answer.OVER_QUOTA), "QuotaExceeded"),
        (Fate(starts_after=0.01, start_failure=Ending(EndCause.START_FAILED, message="no")), "StartFailed"),
    ],
)
async def test_sandboxes_that_do_not_start_are_counted_by_why(store: Store, fate: Fate, reason: str) -> None:
    pools = Pools(store, fates=always(fate), warm=2)
    counts = Counts(pools.metrics)
    async with pools.keeper():
        await until(lambda: _at_least(1, counts, "start_failures_total", environment="small", reason=reason))


@sees("verdicts", "rollout_calls")
async def test_a_rollout_that_nobody_calls_for_any_more_is_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollcage.controller.audit._CALL_MARGIN", -environment().spec.limits.max_timeout_seconds)
    pools = Pools(store, warm=1)
    await pools.want(environment(pool={"warm": 1}, budgets={"idleSeconds": 1}))
    counts = Counts(pools.metrics)
    async with pools.keeper():
        await pools.claim("r1")
        await _shows(counts, 1, "verdicts_total", environment="small", verdict="abandoned", cause="trainer_silent")
    assert counts("rollout_calls_count", environment="small", verdict="abandoned") == 1


@sees("verdicts", "infra_failures", "rollout_calls")
async def test_a_rollout_whose_pod_was_evicted_is_counted_with_its_calls(store: Store) -> None:
    pools = Pools(store, warm=1)
    counts = Counts(pools.metrics)
    async with pools.keeper():
        sandbox = await pools.claim("r1")
        await pools.call("r1")
        pools.source.end(sandbox.name, Ending(EndCause.EVICTED))
        await _shows(counts, 1, "infra_failures_total", environment="small", cause="evicted")
    assert counts("verdicts_total", environment="small", verdict="masked", cause="evicted") == 1
    assert counts("rollout_calls_sum", environment="small", verdict="masked") == 1


@sees("verdicts")
async def test_a_rollout_that_two_sandboxes_claim_to_serve_is_counted(
    store: Store, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollcage.controller.recovering._PAUSE", 0.01)
    pools = Pools(store, warm=2)
    counts = Counts(pools.metrics)
    async with pools.keeper():
        first = await pools.claim("r1")
        await pools.call("r1")
        pools.toolservers.silent.add(first.name)
        await redis.flushall()
        await pools.claim("r1")
        pools.toolservers.silent.clear()
        await _shows(counts, 1, "verdicts_total", environment="small", verdict="masked", cause="ambiguous_owner")


@sees("leader")
async def test_who_leads_says_so_and_takes_its_pools_along_when_it_stops(store: Store) -> None:
    pools = Pools(store, warm=2)
    counts = Counts(pools.metrics)
    leading = asyncio.create_task(
        serve(
            source=pools.source,
            recipes=pools.recipes,
            store=store,
            greeter=pools.toolservers,
            metrics=pools.metrics,
            election=alone(store),
            settings=QUICK,
        )
    )
    await _shows(counts, 2, "pool_sandboxes", environment="small", state="ready")
    assert counts("leader") == 1
    leading.cancel()
    await asyncio.gather(leading, return_exceptions=True)
    assert counts("leader") == 0
    assert b"rollcage_pool_sandboxes{" not in pools.metrics.exposition()


async def _shows(counts: Counts, number: float, name: str, **labels: str) -> None:
    async def look() -> bool:
        return counts(name, **labels) == number

    await until(look, f"{name} {labels} to be {number}")


async def _at_least(number: float, counts: Counts, name: str, **labels: str) -> bool:
    return counts(name, **labels) >= number
