"""How rollouts end, and what is known of them afterwards."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import aiohttp
import pytest

from rollcage.core.endings import EndCause, Ending
from rollcage.core.errors import OverQuota, RolloutEnded, RolloutUnknown
from rollcage.core.health import Advice
from rollcage.core.ids import RolloutId, RunId
from rollcage.rollouts.archive import archive
from rollcage.rollouts.errors import Masked, RunUnknown
from rollcage.rollouts.usecases import open_use_cases
from support.stage import ENVIRONMENT, RUN, TENANT
from support.toolserver import SIGNER

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage

ROLLOUT = RolloutId(TENANT, "r1")
NODE_LOST = Ending(EndCause.NODE_LOST)


async def test_a_finished_rollout_may_be_trained_on_and_takes_no_more_calls(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first = await stage.shell("c1", "echo hello")

    await stage.use_cases.finish(ROLLOUT, run=RUN, environment=ENVIRONMENT)

    assert await stage.verdict() == ("trainable", "finished", "trainer")
    assert await stage.store.pools.spent(ENVIRONMENT) == ("sbx-1",)
    with pytest.raises(RolloutEnded):
        await stage.shell("c2")
    assert (await stage.shell("c1", "echo hello")).result == first.result


async def test_a_rollout_that_nobody_heard_of_can_be_finished_and_stays_so(stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    await stage.use_cases.finish(ROLLOUT, run=RUN, environment=ENVIRONMENT)

    with pytest.raises(RolloutEnded):
        await stage.shell("c1")
    assert (await stage.store.pools.counts(ENVIRONMENT)).ready == 1


async def test_a_deleted_rollout_is_abandoned(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")

    await stage.use_cases.delete(ROLLOUT, run=RUN, environment=ENVIRONMENT)

    assert await stage.verdict() == ("abandoned", "deleted_by_trainer", "trainer")


async def test_finishing_does_not_unmask(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo hello")
    await stage.says(NODE_LOST)

    settled = await stage.use_cases.finish(ROLLOUT, run=RUN, environment=ENVIRONMENT)

    assert (settled.first, settled.standing.word) == (False, "masked")
    for call in ("c1", "c2"):
        with pytest.raises(Masked):
            await stage.shell(call, "echo hello")


async def test_a_verdict_comes_with_what_is_known(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    await stage.says(NODE_LOST)

    verdict = await stage.use_cases.verdict(ROLLOUT)

    assert (verdict.run, verdict.environment, verdict.calls) == (RUN, ENVIRONMENT, 1)
    assert verdict.sandbox
    assert verdict.sandbox.uid == "uid-sbx-1"
    assert len(verdict.evidence) == 1
    with pytest.raises(RolloutUnknown):
        await stage.use_cases.verdict(RolloutId(TENANT, "r2"))


async def test_a_trajectory_is_read_in_pages(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    for i in range(5):
        await stage.shell(f"c{i}", f"echo {i}")

    seen, cursor = [], None
    while True:
        page = await stage.use_cases.trajectory(ROLLOUT, cursor=cursor, limit=2)
        seen += [(step.number, step.call_id, step.tool, step.arguments, step.output) for step in page.items]
        cursor = page.cursor
        if cursor is None:
            break

    assert seen == [(i + 1, f"c{i}", "shell", {"command": f"echo {i}"}, f"{i}\n") for i in range(5)]


async def test_a_run_that_lost_many_rollouts_is_not_trained_on(stage: Stage) -> None:
    for i in range(20):
        rollout = RolloutId(TENANT, f"r{i}")
        await stage.use_cases.finish(rollout, run=RUN, environment=ENVIRONMENT)
    assert (await stage.use_cases.health(RunId(TENANT, RUN))).advice is Advice.PROCEED

    for i in range(20, 28):
        await stage.says(NODE_LOST, rollout=f"r{i}")
    health = await stage.use_cases.health(RunId(TENANT, RUN))

    assert (health.advice, health.figures.masked, health.figures.trainable) == (Advice.SKIP, 8, 20)
    assert health.figures.causes["node_lost"] == 8
    with pytest.raises(RunUnknown):
        await stage.use_cases.health(RunId(TENANT, "run-2"))


async def test_sandboxes_are_reserved_ahead_within_the_quota(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    run = RunId(TENANT, RUN)

    held = await stage.use_cases.reserve(
        run, environment=ENVIRONMENT, reservation="step-1", count=3, ttl=timedelta(minutes=1), quota=10
    )

    assert (held.left, held.set_aside) == (3, 1)
    with pytest.raises(OverQuota):
        await stage.use_cases.reserve(
            run, environment=ENVIRONMENT, reservation="step-2", count=11, ttl=timedelta(minutes=1), quota=10
        )


async def test_an_archive_holds_the_verdict_and_every_call(stage: Stage, tmp_path: Path) -> None:
    await stage.sandbox("sbx-1")
    for i in range(3):
        await stage.shell(f"c{i}", f"echo {i}")
    await stage.says(NODE_LOST)

    target = tmp_path / "archive" / "r1.jsonl"
    calls = await archive(stage.use_cases, ROLLOUT, to=f"file://{target}")

    head, *steps = (json.loads(line) for line in target.read_text().splitlines())
    assert (calls, head["word"], head["cause"]) == (3, "masked", "node_lost")
    assert [(step["call_id"], step["output"]) for step in steps] == [(f"c{i}", f"{i}\n") for i in range(3)]


async def test_a_sandbox_can_be_reached_for_its_files(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with pytest.raises(RolloutUnknown):
        await stage.use_cases.reach(ROLLOUT)
    await stage.shell("c1", "echo hello > note")

    reach = await stage.use_cases.reach(ROLLOUT)

    where = f"{reach.address}/v1/files?path=note"
    async with aiohttp.ClientSession() as session, session.get(where, headers=reach.headers) as answer:
        assert await answer.text() == "hello\n"
    await stage.says(NODE_LOST)
    with pytest.raises(Masked):
        await stage.use_cases.reach(ROLLOUT)


async def test_an_error_of_whoever_holds_the_use_cases_is_not_wrapped(stage: Stage) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_use_cases(stage.store, SIGNER):
            raise ZeroDivisionError
