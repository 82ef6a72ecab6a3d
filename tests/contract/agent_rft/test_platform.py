"""What the training platform and its models get to see of the gateway, also when things break."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from contract.agent_rft.jobs import open_job
from contract.agent_rft.platform import LARGEST, PATIENCE, RETRIES, Discarded, Trained
from contract.agent_rft.preflight import sample_of
from rollcage.core.errors import StoreUnavailable
from rollcage.gateway.ports import Limits
from support.gateways import parts
from support.scripted_use_cases import Scripted
from support.waiting import until

if TYPE_CHECKING:
    from contract.agent_rft.platform import Job
    from rollcage.rollouts.actions import Action, Answer
    from rollcage.rollouts.usecases import UseCases
    from support.stage import Stage

TRACE = "trace_5f0c2b8e9d1a47c3b6e2f4a8d7c9e013"
ITEM = {"messages": [{"role": "user", "content": "How much is it?"}], "reference_answer": "42"}


def trained(job: Job, trace: str = TRACE) -> Trained:
    return Trained(job, trace, ITEM)


async def test_a_rollout_keeps_its_state_over_parallel_and_later_calls(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    rollout = trained(job)
    first = await rollout.calls(*(("shell", {"command": f"echo {n} > f{n}; cat f{n}"}) for n in range(8)))
    assert first == [f"{n}\n" for n in range(8)]
    assert await rollout.call("shell", {"command": "cat f*"}) == "".join(f"{n}\n" for n in range(8))
    assert rollout.attempts == 9


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("shell", {"command": "exit 7"}, "[exit code 7]"),
        ("shell", {"command": "sleep 60", "timeout_ms": 50}, "timed out"),
        ("shell", "{broken", "object"),
        ("shell", "", "object"),
        ("shell", "null", "object"),
        ("shell", '["ls"]', "object"),
        ("shell", '{"command":"echo a","command":"echo b"}', ""),
        ("shell", {"cmd": "ls"}, "command"),
        ("shell", {"command": "ls", "timeout_ms": 0}, "timeout_ms"),
        ("read_file", {"path": "missing"}, "missing"),
    ],
)
async def test_what_the_model_did_is_shown_to_it_at_the_first_attempt(
    job: Job, stage: Stage, name: str, arguments: Any, says: str
) -> None:
    await stage.sandbox("sbx-1")
    rollout = trained(job)
    assert says in await rollout.call(name, arguments)
    assert rollout.attempts == 1


async def test_a_tool_that_the_job_has_and_the_environment_has_not_is_told_to_the_model(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    rollout = trained(replace(job, tools={**job.tools, "browser": job.tools["shell"]}))
    assert "shell" in await rollout.call("browser", {})
    assert rollout.attempts == 1


@pytest.mark.parametrize("letter", ["x", '"', "\\1", "\\377", "ä", "😀"])
async def test_no_output_is_ever_too_large_for_the_platform(job: Job, stage: Stage, letter: str) -> None:
    # Some letters take six times their room once they are written as JSON.
    await stage.sandbox("sbx-1", limits={"output_bytes": 512 << 10})
    rollout = trained(job)
    command = f"yes '{letter}{letter}{letter}' | head -c 2000000"
    if letter.startswith("\\"):
        command = f"head -c 2000000 /dev/zero | tr '\\0' '{letter}'"
    told = await rollout.call("shell", {"command": command})
    assert told != "413"
    assert 10_000 < len(told.encode()) < LARGEST


async def test_a_rollout_whose_sandbox_is_lost_is_discarded_and_its_model_saw_nothing(job: Job, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.sandbox("sbx-2")
    rollout = trained(job)
    assert await rollout.call("shell", {"command": "echo one"}) == "one\n"
    victim = server if server.state().bound_to else stage.servers["sbx-2"]
    victim.process.kill()
    victim.process.wait()
    with pytest.raises(Discarded, match='"masked"'):
        await rollout.call("shell", {"command": "echo two"})
    assert rollout.shown == ["one\n"]
    assert rollout.attempts == 1 + 1 + RETRIES


async def test_a_lost_rollout_is_discarded_by_its_grader_as_well(job: Job, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    rollout = trained(job)
    await rollout.call("shell", {"command": "echo one"})
    server.process.kill()
    server.process.wait()
    with pytest.raises(Discarded):
        await rollout.call("shell", {"command": "echo two"})
    with pytest.raises(Discarded, match='"masked"'):
        await rollout.grade(sample_of("42", ()))


class Losing(Scripted):
    """Real use cases whose answers get lost on the way back, the first so many of them."""

    def __init__(self, real: UseCases, losses: int) -> None:
        super().__init__()
        self._real = real
        self._losses = losses

    async def act(self, action: Action) -> Answer:
        answer = await self._real.act(action)
        if self._losses:
            self._losses -= 1
            raise StoreUnavailable("lost on the way back")
        return answer


async def test_a_call_whose_answer_got_lost_is_retried_and_ran_once(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    async with open_job(parts(Losing(stage.use_cases, RETRIES))) as job:
        rollout = trained(job)
        assert await rollout.call("shell", {"command": "echo x >> f; cat f"}) == "x\n"
        assert rollout.attempts == 1 + RETRIES
        assert await rollout.call("shell", {"command": "cat f"}) == "x\n"


async def test_a_retry_at_another_gateway_gets_the_same_result(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    request = trained(job).request("shell", {"command": "date +%N"})
    async with open_job(parts(await stage.gateway())) as other:
        replies = [await one.ask_tool(request) for one in (job, other)]
    assert replies[0].content == replies[1].content


async def test_a_call_that_the_platform_did_not_wait_for_ran_once(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    go, began = (stage.workdir("sbx-1") / name for name in ("go", "f"))
    command = f"echo x >> f; while [ ! -e {go} ]; do sleep 0.05; done; cat f"
    request = trained(job).request("shell", {"command": command})
    hasty = asyncio.create_task(job.ask_tool(request))
    await asyncio.to_thread(until, began.exists)
    hasty.cancel()
    await asyncio.wait({hasty})
    go.touch()
    assert await trained(job).send(request) == "x\n"


async def test_the_gateway_answers_before_the_platform_stops_waiting(stage: Stage) -> None:
    assert Limits().rft_seconds.total_seconds() < PATIENCE
    limits = Limits(rft_seconds=timedelta(seconds=1))
    async with open_job(parts(stage.use_cases, limits=limits), patience=60) as job:
        # No sandbox, and none to come.
        with pytest.raises(Discarded, match='"claim_timed_out"'):
            await trained(job).call("shell", {"command": "true"})


async def test_a_rollout_is_scored_by_its_final_answer(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    rollout = trained(job)
    await rollout.call("shell", {"command": "echo 42"})
    assert await rollout.grade(sample_of("42", ())) == 1.0
    # The platform may ask twice.
    assert await rollout.grade(sample_of("42", ())) == 1.0


async def test_a_rollout_that_called_nothing_is_scored(job: Job) -> None:
    rollout = trained(job)
    assert await rollout.grade(sample_of("41", ())) == 0.0
    assert rollout.attempts == 1


async def test_a_rollout_that_stopped_in_the_middle_of_its_calls_is_scored(job: Job, stage: Stage) -> None:
    # The platform lets a rollout make only so many steps; what it then has is calls, and no text.
    await stage.sandbox("sbx-1")
    rollout = trained(job)
    await rollout.call("shell", {"command": "true"})
    call = {"id": "call_2", "type": "function", "function": {"name": "shell", "arguments": "{}"}}
    assert await rollout.grade(sample_of(None, (call,))) == 0.0


async def test_grading_fails_in_a_way_that_scores_nobody(stage: Stage) -> None:
    async with open_job(parts(stage.use_cases)) as job:
        rollout = trained(job)
        with pytest.raises(Discarded, match='"no_grader"'):
            await rollout.grade(sample_of("42", ()))
        assert rollout.attempts == 1 + RETRIES
