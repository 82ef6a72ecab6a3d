"""Watching a call that really runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rollcage.core.ids import RolloutId
from rollcage.gateway.watching import watched
from support.stage import TENANT

if TYPE_CHECKING:
    from support.gateways import Caller
    from support.stage import Stage

PATH = "/v1/rollouts/r1/calls/stream"
SHELL = {"environment": "small", "tool": "shell", "run": "run-1", "call_id": "c1"}


def read(event: bytes) -> tuple[str, dict[str, Any]]:
    name, data = event.decode().strip().split("\n")
    return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))


async def test_output_is_seen_while_the_command_runs_and_the_command_runs_once(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    go = stage.workdir("sbx-1") / "go"
    # It ends only after its first words were seen.
    command = f"echo x >> ran; echo one; while [ ! -e {go} ]; do sleep 0.02; done; echo two"
    seen: list[tuple[str, dict[str, Any]]] = []
    async for event in watched(stage.use_cases, stage.action("c1", command)):
        if event.startswith(b":"):
            continue
        seen.append(read(event))
        go.touch()
    *during, (last, result) = seen
    assert during
    assert {name for name, _ in during} <= {"output", "gap"}
    assert (last, result["output"], result["outcome"]) == ("result", "one\ntwo\n", "ok")
    assert (stage.workdir("sbx-1") / "ran").read_text() == "x\n"


async def test_a_watched_call_is_recorded_like_any_other(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    async for _ in watched(stage.use_cases, stage.action("c1", "echo kept")):
        pass
    page = await stage.use_cases.trajectory(RolloutId(TENANT, "r1"))
    assert [(step.call_id, step.output) for step in page.items] == [("c1", "kept\n")]


async def test_a_call_that_ended_before_is_answered_with_its_result_alone(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    body = {**SHELL, "arguments": {"command": "date +%N"}}
    first = (await ask("POST", "/v1/rollouts/r1/calls", body)).json()
    reply = await ask("POST", PATH, body)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert read(reply.body) == ("result", {**first, "replayed": True})


async def test_what_goes_wrong_with_the_rollout_is_the_last_event(ask: Caller, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await ask("POST", "/v1/rollouts/r1/calls", {**SHELL, "arguments": {"command": "true"}})
    server.process.kill()
    server.process.wait()
    reply = await ask("POST", PATH, {**SHELL, "call_id": "c2", "arguments": {"command": "true"}})
    name, problem = read(reply.body)
    assert (name, problem["code"], problem["status"]) == ("error", "masked", 503)


async def test_what_is_wrong_with_the_request_is_a_problem_before_any_event(ask: Caller) -> None:
    assert (await ask("POST", PATH, {**SHELL, "environment": "gone"})).code == (404, "environment_unknown")
