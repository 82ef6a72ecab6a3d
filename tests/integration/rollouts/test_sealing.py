"""A sealed sandbox: its rollout is over, and nobody failed."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from rollcage.core.errors import RolloutEnded
from rollcage.core.ids import RolloutId
from rollcage.rollouts.errors import SandboxUnreachable
from rollcage.rollouts.sealing import seal
from support.frail_line import OldRelease, frail_line
from support.stage import ENVIRONMENT, TENANT, Stage
from support.waiting import eventually

ROLLOUT = RolloutId(TENANT, "r1")


async def sealed(stage: Stage) -> None:
    assert await seal(await stage.use_cases.reach(ROLLOUT))


async def test_a_late_call_is_refused_as_after_the_end_and_gets_no_other_sandbox(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo first")
    await stage.sandbox("sbx-2")
    await sealed(stage)

    with pytest.raises(RolloutEnded) as refused:
        await stage.shell("c2", "touch ran")

    assert (refused.value.verdict, refused.value.cause) == ("trainable", "finished")
    assert await stage.verdict() == (None, None, None)
    assert await stage.steps() == [("c1", "ok", "first\n")]
    assert (await stage.store.pools.counts(ENVIRONMENT)).ready == 1
    assert not list(stage.workdir("sbx-2").iterdir())


async def test_another_gateway_refuses_it_just_so(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    await sealed(stage)

    with pytest.raises(RolloutEnded):
        await (await stage.gateway()).act(stage.action("c2"))


async def test_a_repeat_of_an_earlier_call_is_answered(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first = await stage.shell("c1", "date +%N")
    await sealed(stage)

    assert (await stage.shell("c1", "date +%N")).result == first.result


async def test_a_call_that_the_seal_ended_has_a_result_and_masks_nothing(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    running = asyncio.create_task(stage.shell("c2", "touch begun; sleep 1000"))
    await eventually(lambda: asyncio.to_thread((stage.workdir("sbx-1") / "begun").exists))

    await seal(await stage.use_cases.reach(ROLLOUT), grace=timedelta())

    assert (await running).output == "[stopped: the sandbox takes no more calls]"
    assert await stage.steps() == [("c1", "ok", ""), ("c2", "timed_out", "[stopped: the sandbox takes no more calls]")]
    assert await stage.verdict() == (None, None, None)


async def test_a_toolserver_of_an_older_release_says_that_it_cannot(stage: Stage) -> None:
    async with frail_line(stage, kind=OldRelease):
        await stage.shell("c1")

        assert await seal(await stage.use_cases.reach(ROLLOUT)) is None
        assert (await stage.shell("c2", "echo on")).output == "on\n"


async def test_a_sandbox_that_is_gone_cannot_be_sealed(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1")
    server.process.kill()
    server.process.wait()

    with pytest.raises(SandboxUnreachable):
        await seal(await stage.use_cases.reach(ROLLOUT))


async def test_a_successor_that_lost_the_state_is_not_sealed_in_its_place(stage: Stage) -> None:
    async with frail_line(stage) as line:
        await stage.shell("c1")
        successor = stage.start("again", as_sandbox="sbx-1")
        line.lead_to(successor)

        with pytest.raises(SandboxUnreachable):
            await seal(await stage.use_cases.reach(ROLLOUT))
        assert not successor.state().sealed
        assert successor.state().bound_to is None
