"""
Rollouts are graded on real pods: what they left is frozen, and tested in a pod of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp

from rollcage.core.ids import RolloutId, RunId
from rollcage.grading.fresh import RUN, fetch
from rollcage.rollouts.sealing import seal
from support.cluster_stage import until
from support.deployed import gateway
from support.trainer import SECONDS, TOKEN, Trainer, free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.store.records import Sandbox
    from support.cluster_stage import Stage

# The item says whether the test is one that takes its time.
COMMAND = "if grep -qx yes slow; then sleep 60; fi; sh tests/check"
GRADING = {
    "artifacts": ["src"],
    "grader": {"kind": "command", "command": COMMAND, "files": {"slow": "item.slow"}},
}
SETUP = "mkdir src tests && echo 0 > src/answer && echo 'grep -qx 42 src/answer' > tests/check"
QUICK, SLOW = {"slow": "no\n"}, {"slow": "yes\n"}
WRITER = "setsid nohup sh -c 'while :; do n=$((n+1)); echo $n > src/a; echo $n > src/b; done' > /dev/null 2>&1 &"


@asynccontextmanager
async def graded(stage: Stage, warm: int) -> AsyncIterator[Trainer]:
    """Lend a trainer over a controller and a gateway, with that many pods ready."""
    await stage.want(warm, setup={"commands": [SETUP]}, grading=GRADING)
    port = free_port()
    async with AsyncExitStack() as stack:
        stack.enter_context(stage.controller())
        stack.enter_context(gateway(stage.directory, redis_url=stage.url, token=TOKEN, port=port))
        session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=SECONDS)
        trainer = Trainer(await stack.enter_async_context(session), [port])
        await until(lambda: trainer.serving(port), "the gateway")
        await stage.ready(warm)
        yield trainer


async def did(trainer: Trainer, trace: str, command: str) -> None:
    """Make a call that must succeed."""
    status, answer = await trainer.call(trace, f"call_{trace}", command)
    assert (status, answer["output"]) == (200, "")


async def test_what_is_right_is_scored_and_what_was_tampered_with_has_no_effect(stage: Stage) -> None:
    async with graded(stage, 3) as trainer:
        await did(trainer, "trace_good", "echo 42 > src/answer")
        await did(trainer, "trace_tampering", "echo true > tests/check; echo yes > src/answer; echo no > slow")

        good, tampering = await asyncio.gather(
            trainer.grade("trace_good", QUICK), trainer.grade("trace_tampering", QUICK)
        )

        assert (good, tampering) == ((200, {"score": 1.0}), (200, {"score": 0.0}))
        assert await trainer.grade("trace_good", QUICK) == good


async def test_a_writer_that_the_model_left_is_dead_before_anything_is_taken(stage: Stage) -> None:
    async with graded(stage, 2) as trainer:
        rollout = RolloutId("acme", "trace_writer")
        await did(trainer, "trace_writer", "echo 42 > src/answer")
        await trainer.tool("trace_writer", "c2", "session_create", {"session": "s"})
        await trainer.tool("trace_writer", "c3", "session_run", {"session": "s", "command": WRITER})

        async def tree() -> bytes:
            return await fetch(await stage.use_cases.reach(rollout), "/v1/tree", "src", most=1 << 20)

        async def changes() -> bool:
            return await tree() != await tree()

        await until(changes, "the writer")

        sealed = await seal(await stage.use_cases.reach(rollout))

        assert sealed
        assert sealed.left == 0
        assert not await changes()
        status, answer = await trainer.call("trace_writer", "c4", "echo 0 > src/answer")
        assert (status, answer["output"]) == (200, "This rollout is over; nothing was run.")
        assert await trainer.grade("trace_writer", QUICK) == (200, {"score": 1.0})


async def test_a_grader_whose_pod_is_deleted_gives_no_number(stage: Stage) -> None:
    async with graded(stage, 2) as trainer:
        await did(trainer, "trace_robbed", "echo 42 > src/answer")
        grading = asyncio.create_task(trainer.grade("trace_robbed", SLOW))
        pod = await _testing(stage)

        await stage.api.request(
            "DELETE", f"/api/v1/namespaces/{stage.namespace}/pods/{pod.name}", body={"gracePeriodSeconds": 0}
        )

        status, answer = await grading
        assert (status, answer["code"]) == (503, "grading_sandbox_failed")
        assert (await trainer.ask("GET", "/v1/rollouts/trace_robbed/score"))[0] == 404
        # What was taken is kept: asked again, with a pod that lives, there is a score.
        assert await trainer.grade("trace_robbed", QUICK) == (200, {"score": 1.0})


async def _testing(stage: Stage) -> Sandbox:
    """Wait until a grader's command runs, and return where."""
    found: list[Any] = []

    async def look() -> bool:
        page = await stage.store.rollouts.of_run(RunId("acme", RUN).key)
        # The first call claims, the second one is the command.
        found[:] = [one.sandbox for one in page.items if one.calls == 2 and one.sandbox]
        return bool(found)

    await until(look, "the grader's command")
    sandbox: Sandbox = found[0]
    return sandbox
