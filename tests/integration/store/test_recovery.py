"""What is promised about an emptied Redis, and about one of another release."""

import json

import pytest
from redis.asyncio import Redis

from integration.store.desk import ENVIRONMENT, TRAINED, Desk, key, sandbox, subject, wish
from rollcage.core.errors import RestoreConflict, SchemaMismatch, StoreRecovering, StoreUnavailable
from rollcage.store.calls import CallEnding
from rollcage.store.pools import Fate
from rollcage.store.records import Subject
from rollcage.store.recovery import SCHEMA, Phase
from rollcage.store.settings import Settings
from rollcage.store.store import open_store


async def test_an_emptied_store_refuses_new_claims_until_recovery_is_complete(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.redis.flushall()

    assert (await desk.store.standpoint()).phase is Phase.RECOVERING
    with pytest.raises(StoreRecovering):
        await desk.claim("r1")

    assert await desk.leader.recovery.begin("g2")
    await desk.offer("s1")
    with pytest.raises(StoreRecovering):
        await desk.claim("r1")

    await desk.leader.recovery.complete("g2")
    assert await desk.claim("r1") == "s1"


async def test_a_restored_rollout_is_where_it_was(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.redis.flushall()
    await desk.leader.recovery.begin("g2")

    for _ in range(2):
        assert await desk.leader.recovery.restore(subject("r1"), sandbox("s1"), may_have_run=True)

    # Also before recovery is complete: the rollout is not a new one.
    assert await desk.claim("r1") == "s1"
    assert (await desk.record("r1")).delivered == 1
    assert (await desk.store.pools.counts(ENVIRONMENT)).claimed == 1
    assert await desk.leader.pools.offer(sandbox("s1")) is Fate.BOUND


async def test_a_pod_that_knows_only_its_rollouts_key_is_restored_and_named_later(desk: Desk) -> None:
    await desk.leader.recovery.restore(Subject(key("r1"), ENVIRONMENT), sandbox("s1"), may_have_run=True)
    assert (await desk.record("r1")).subject.rollout is None
    await desk.begin("r1")
    await desk.store.calls.finish(key("r1"), "call-1", CallEnding(b"x", "ok"))

    assert await desk.claim("r1") == "s1"

    assert (await desk.record("r1")).subject == subject("r1")
    run = subject("r1").run
    assert run
    figures = await desk.store.rollouts.run(run.key)
    assert figures
    assert figures.active == 1


async def test_a_rollout_known_by_its_key_alone_can_be_ended(desk: Desk) -> None:
    nameless = Subject(key("r1"), ENVIRONMENT)
    await desk.leader.recovery.restore(nameless, sandbox("s1"), may_have_run=True)

    await desk.store.rollouts.end(nameless, TRAINED)

    assert await desk.store.pools.spent(ENVIRONMENT) == ("s1",)


async def test_a_sandbox_that_only_redis_thought_idle_goes_to_whom_it_serves(desk: Desk) -> None:
    await desk.offer("s1")

    await desk.leader.recovery.restore(subject("r1"), sandbox("s1"), may_have_run=True)

    counts = await desk.store.pools.counts(ENVIRONMENT)
    assert (counts.ready, counts.claimed) == (0, 1)


async def test_two_owners_of_one_sandbox_are_a_conflict_with_evidence_for_both(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")

    with pytest.raises(RestoreConflict) as refused:
        await desk.leader.recovery.restore(subject("r2"), sandbox("s1"), may_have_run=True)

    assert (refused.value.told_rollout, refused.value.recorded_rollout) == (key("r2"), key("r1"))
    for rollout in ("r1", "r2"):
        (account,) = await desk.store.rollouts.evidence(key(rollout))
        assert json.loads(account)["kind"] == "restore_conflict"
    assert await desk.claim("r1") == "s1"


async def test_two_sandboxes_of_one_rollout_are_a_conflict(desk: Desk) -> None:
    await desk.leader.recovery.restore(subject("r1"), sandbox("s1"), may_have_run=True)

    with pytest.raises(RestoreConflict) as refused:
        await desk.leader.recovery.restore(subject("r1"), sandbox("s2"), may_have_run=True)

    assert refused.value.recorded_sandbox == "s1"


async def test_a_pod_of_a_rollout_that_ended_is_to_be_deleted(desk: Desk) -> None:
    await desk.store.rollouts.end(subject("r1"), TRAINED)

    assert not await desk.leader.recovery.restore(subject("r1"), sandbox("s1"), may_have_run=True)

    assert await desk.store.pools.spent(ENVIRONMENT) == ("s1",)


async def test_a_pod_that_was_given_up_is_not_bound_again(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.leader.pools.died("s1")

    assert not await desk.leader.recovery.restore(subject("r1"), sandbox("s1"), may_have_run=True)

    await desk.offer("s2")
    assert await desk.claim("r1") == "s2"


async def test_a_live_store_needs_no_recovery_unless_it_is_forced(desk: Desk) -> None:
    assert not await desk.leader.recovery.begin("g2")
    assert (await desk.store.standpoint()).generation == "g1"

    assert await desk.leader.recovery.begin("g2", force=True)
    with pytest.raises(StoreRecovering):
        await desk.claim("r1")


async def test_a_second_loss_in_the_middle_of_a_recovery_is_noticed(desk: Desk) -> None:
    await desk.redis.flushall()
    await desk.leader.recovery.begin("g2")
    await desk.redis.flushall()

    with pytest.raises(StoreRecovering):
        await desk.leader.recovery.complete("g2")


async def test_reservations_wait_for_recovery_too(empty: Desk) -> None:
    run = subject("r1").run
    assert run

    with pytest.raises(StoreRecovering):
        await empty.store.reservations.reserve(
            run, environment="py", reservation="x", count=1, ttl=wish("r1").wait, quota=10
        )


async def test_the_data_of_another_major_release_is_left_alone(redis: Redis, settings: Settings) -> None:
    await redis.set("{rollcage}:schema", "99.0")

    with pytest.raises(SchemaMismatch) as refused:
        async with open_store(settings):
            pass

    assert (refused.value.found, refused.value.ours) == ("99.0", SCHEMA)
    assert await redis.dbsize() == 1


async def test_the_data_of_another_minor_release_is_shared(redis: Redis, settings: Settings) -> None:
    await redis.set("{rollcage}:schema", f"{SCHEMA.partition('.')[0]}.99")

    async with open_store(settings) as store:
        assert (await store.standpoint()).phase is Phase.RECOVERING


async def test_installations_do_not_see_each_other(desk: Desk, settings: Settings) -> None:
    await desk.offer("s1")

    async with open_store(Settings(settings.url, namespace="other")) as store:
        assert (await store.pools.counts(ENVIRONMENT)).ready == 0


async def test_a_server_that_is_not_there_is_said_to_be_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        async with open_store(Settings("unix:///nowhere/redis.sock")):
            pass


async def test_an_error_inside_the_block_arrives_as_it_is(settings: Settings, redis: Redis) -> None:
    assert await redis.ping()

    with pytest.raises(KeyError):
        async with open_store(settings):
            raise KeyError


async def test_a_full_server_is_unavailable_and_nothing_is_half_done(desk: Desk) -> None:
    await desk.redis.config_set("maxmemory", "1")
    try:
        with pytest.raises(StoreUnavailable):
            await desk.offer("s1")
    finally:
        await desk.redis.config_set("maxmemory", "0")

    assert await desk.store.pools.fates(["s1"]) == {}
