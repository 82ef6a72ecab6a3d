"""What a call comes to that was sent before it was marked, and whose mark then came to something else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rollcage.core.errors import CallConflict, RolloutEnded
from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause
from rollcage.rollouts import beginning
from rollcage.rollouts.actions import Outcome, prepare
from rollcage.rollouts.errors import Masked
from rollcage.store.calls import CallEnding
from support.environments import environment
from support.stage import ENVIRONMENT, RUN, TENANT
from support.waiting import eventually, until

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from support.stage import Stage

ROLLOUT = RolloutId(TENANT, "r1")


async def test_a_rollout_that_another_gateway_finished_shows_nothing_more(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    other = await stage.gateway()
    await other.finish(ROLLOUT, run=RUN, environment=ENVIRONMENT)

    with pytest.raises(RolloutEnded):
        await stage.shell("c2", "echo secret")

    assert await stage.steps() == [("c1", "ok", "")]


async def test_calls_made_elsewhere_count_into_the_budget_before_anything_runs(stage: Stage) -> None:
    stage.environment = environment(budgets={"calls": 3})
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo x >> note")
    other = await stage.gateway()
    for call in ("c2", "c3"):
        await other.act(stage.action(call, "echo x >> note"))

    beyond = await stage.shell("c4", "echo x >> note")

    assert (beyond.outcome, beyond.output) == (Outcome.REFUSED, "[not run: all 3 calls are used up]")
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\nx\nx\n"
    assert (await stage.steps())[-1] == ("c4", "refused", beyond.output)


async def test_a_result_that_the_record_has_counts_before_the_sandboxs_own(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    action = stage.action("c2", "echo x >> note; echo second")
    prepared = prepare(action)
    await stage.store.calls.begin(prepared.key, prepared.call)
    first = b'{"call_id":"c2","tool":"shell","class":"ok","output":"first","data":{},"facts":{}}'
    await stage.store.calls.finish(prepared.key, "c2", CallEnding(first, "ok"))

    answer = await stage.use_cases.act(action)

    assert (answer.output, answer.result, answer.replayed) == ("first", first, True)


async def test_a_call_id_used_for_something_else_is_a_conflict(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    other = await stage.gateway()
    await other.act(stage.action("c2", "echo x >> note"))

    with pytest.raises(CallConflict):
        await stage.shell("c2", "echo y >> note")

    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_a_rollout_that_the_record_has_lost_is_masked_and_not_begun_anew(stage: Stage, redis: Redis) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo x >> note")
    await stage.sandbox("sbx-2")
    record = [key async for key in redis.scan_iter(f"*{ROLLOUT.key}*")]
    await redis.delete(*record)

    with pytest.raises(Masked) as masked:
        await stage.shell("c2", "echo x >> note")

    assert masked.value.cause is Cause.AMBIGUOUS_OWNER
    assert not (stage.workdir("sbx-2") / "note").exists()


async def test_a_caller_that_goes_away_at_once_and_asks_again_finds_one_run(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    call = asyncio.create_task(stage.shell("c2", "echo x >> note; echo done"))
    # One turn of the loop: the call is on its way, its mark as well, and nobody has answered yet.
    await asyncio.sleep(0)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    again = await stage.shell("c2", "echo x >> note; echo done")

    assert again.output == "done\n"
    assert (await stage.steps())[1:] == [("c2", "ok", "done\n")]
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_a_short_call_is_marked_and_recorded_at_its_end_without_a_script(
    stage: Stage, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginning, "_MARKED_AFTER", 60.0)
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    await redis.config_resetstat()

    await stage.shell("c2", "echo done")

    asked = await redis.info("commandstats")
    assert asked["cmdstat_exec"]["calls"] == 1
    assert "cmdstat_evalsha" not in asked
    assert (await stage.steps())[1:] == [("c2", "ok", "done\n")]


async def test_a_call_that_runs_can_be_seen_in_the_record(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    call = asyncio.create_task(stage.shell("c2", "until [ -e go ]; do sleep 0.01; done"))

    async def seen() -> bool:
        return len((await stage.use_cases.trajectory(ROLLOUT)).items) == 2

    await eventually(seen)
    (stage.workdir("sbx-1") / "go").touch()
    await call

    assert (await stage.steps())[1:] == [("c2", "ok", "")]


async def test_a_call_that_its_caller_left_before_it_was_marked_is_recorded_all_the_same(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginning, "_MARKED_AFTER", 60.0)
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    call = asyncio.create_task(stage.shell("c2", "echo x >> note; until [ -e go ]; do sleep 0.01; done; echo done"))
    note = stage.workdir("sbx-1") / "note"
    await asyncio.to_thread(until, note.exists)

    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    (stage.workdir("sbx-1") / "go").touch()

    async def recorded() -> bool:
        return (await stage.steps())[1:] == [("c2", "ok", "done\n")]

    await eventually(recorded)
    assert note.read_text() == "x\n"
