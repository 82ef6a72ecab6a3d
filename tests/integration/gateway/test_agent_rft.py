"""Agent RFT calls that really run."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.core.ids import RolloutId, RunId
from rollcage.core.verdict_words import Cause, Word
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits
from rollcage.rollouts.actions import Outcome
from rollcage.store.records import Subject, Verdict
from support.gateways import Caller, all_is_well, parts

if TYPE_CHECKING:
    from support.gateways import Reply
    from support.stage import Stage

TOOLS = "/agent-rft/runs/run-1/environments/small/tools"


async def shell(ask: Caller, command: str, **fields: Any) -> Reply:
    body = {"name": "shell", "arguments": json.dumps({"command": command}), "trace_id": "trace_1", **fields}
    return await ask("POST", TOOLS, body)


async def output(ask: Caller, command: str, **fields: Any) -> str:
    reply = await shell(ask, command, **fields)
    assert reply.status == 200, reply
    text: str = reply.json()["output"]
    return text


async def test_calls_of_a_rollout_share_one_sandbox(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.sandbox("sbx-2")
    await output(ask, "echo kept > note", call_id="c1")
    assert await output(ask, "cat note", call_id="c2") == "kept\n"


async def test_a_retry_gets_the_first_answer_to_the_byte_and_runs_nothing(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first, again = [await shell(ask, "echo x >> note; date +%N", call_id="c1") for _ in range(2)]
    assert first.body == again.body
    assert await output(ask, "cat note", call_id="c2") == "x\n"


async def test_a_retry_without_a_call_id_is_known_by_its_id(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first, again = [await shell(ask, "echo x >> note; date +%N", id="fc_1") for _ in range(2)]
    assert first.body == again.body
    assert await output(ask, "cat note", id="fc_2") == "x\n"


async def test_calls_that_nothing_names_are_each_new(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    for _ in range(2):
        await output(ask, "echo x >> note")
    assert await output(ask, "cat note") == "x\nx\n"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"arguments": "not json"}, "object"),
        ({"arguments": '{"comand":"ls"}'}, "command"),
        ({"arguments": '{"command":"\\ud800"}'}, ""),
        ({"name": "no_such_tool"}, "shell"),
        ({"name": "no such \ud800 tool"}, "shell"),
    ],
    ids=["no JSON", "a misspelt argument", "half a surrogate", "an unknown tool", "a tool that no text can name"],
)
async def test_what_the_model_got_wrong_is_told_to_the_model(
    ask: Caller, stage: Stage, fields: dict[str, Any], says: str
) -> None:
    await stage.sandbox("sbx-1")
    assert says in await output(ask, "true", call_id="c1", **fields)


async def test_a_probe_leaves_a_finished_rollout_and_a_spent_sandbox(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    assert await output(ask, "echo hi", trace_id=None) == "hi\n"
    (found,) = (await stage.store.rollouts.of_run(RunId("ours", "probes").key)).items
    assert found.verdict is not None
    assert found.verdict.word == "trainable"
    assert await stage.store.pools.spent("small") == ("sbx-1",)


async def test_a_lost_sandbox_is_a_503_for_this_call_and_every_later_one(ask: Caller, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await output(ask, "true", call_id="c1")
    server.process.kill()
    server.process.wait()
    for call in ("c2", "c2", "c3"):
        assert (await shell(ask, "true", call_id=call)).code == (503, "masked")
    report = await stage.use_cases.verdict(RolloutId("ours", "trace_1"))
    assert report.word == "masked"


async def test_a_model_that_ended_its_own_sandbox_is_told_so(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await output(ask, "true", call_id="c1")
    subject = Subject.of(RolloutId("ours", "trace_1"), run="run-1", environment="small")
    await stage.store.rollouts.end(subject, Verdict(Word.TRAINABLE, by="controller", cause=Cause.OUT_OF_MEMORY))
    assert "memory" in await output(ask, "true", call_id="c2")


async def test_eight_calls_at_once_are_all_answered(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    outputs = await asyncio.gather(*(output(ask, f"echo {n}", call_id=f"c{n}") for n in range(8)))
    assert outputs == [f"{n}\n" for n in range(8)]


async def test_an_empty_pool_is_a_503_that_says_when_to_come_back(stage: Stage) -> None:
    brief = parts(stage.use_cases, limits=Limits(rft_seconds=timedelta(seconds=1.5)))
    reply = await shell(Caller(gateway(brief, checks=all_is_well)), "true", call_id="c1")
    assert reply.code == (503, "claim_timed_out")
    assert "retry-after" in reply.headers


async def test_the_record_keeps_what_the_model_saw(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await output(ask, "echo one", call_id="c1")
    await output(ask, "no-such-command", call_id="c2")
    page = await stage.use_cases.trajectory(RolloutId("ours", "trace_1"))
    assert [(step.call_id, step.outcome) for step in page.items] == [("c1", Outcome.OK), ("c2", Outcome.FAILED)]
