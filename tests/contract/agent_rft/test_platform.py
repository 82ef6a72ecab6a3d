"""What the training platform and its models get to see of the gateway, also when things break."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from contract.agent_rft.platform import RETRIES, Discarded, Trained
from rollcage.core.errors import StoreUnavailable
from rollcage.gateway.app import gateway
from support.gateways import Caller, all_is_well, parts
from support.scripted_use_cases import Scripted

if TYPE_CHECKING:
    from rollcage.rollouts.actions import Action, Answer
    from rollcage.rollouts.usecases import UseCases
    from support.gateways import Reply
    from support.stage import Stage

TOOLS = "/agent-rft/environments/small/tools"
REQUESTS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("requests.json").read_text())


def trained(ask: Caller, trace: str = "trace_1") -> Trained:
    async def post(request: dict[str, Any]) -> Reply:
        return await ask("POST", TOOLS, request)

    return Trained(post, trace)


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_as_trainers_send_it_is_answered(ask: Caller, stage: Stage, name: str) -> None:
    await stage.sandbox("sbx-1")
    request = REQUESTS[name]
    reply = await ask("POST", request["path"], request["body"])
    answer = reply.json()
    assert (reply.status, answer["output"]) == (200, "hello\n")
    # The example's client reads output, else result.output.
    assert set(answer) == {"type", "call_id", "id", "output"}
    for echoed in ("id", "call_id"):
        assert answer[echoed] == (request["body"].get(echoed) or answer[echoed])


async def test_a_rollout_keeps_its_state_over_parallel_and_later_calls(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    rollout = trained(ask)
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
        ("shell", {"cmd": "ls"}, "command"),
        ("browser", {}, "shell"),
        ("read_file", {"path": "missing"}, "missing"),
    ],
)
async def test_what_the_model_did_is_shown_to_it_at_the_first_attempt(
    ask: Caller, stage: Stage, name: str, arguments: Any, says: str
) -> None:
    await stage.sandbox("sbx-1")
    rollout = trained(ask)
    assert says in await rollout.call(name, arguments)
    assert rollout.attempts == 1


async def test_a_rollout_whose_sandbox_is_lost_is_discarded_and_its_model_saw_nothing(
    ask: Caller, stage: Stage
) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.sandbox("sbx-2")
    rollout = trained(ask)
    assert await rollout.call("shell", {"command": "echo one"}) == "one\n"
    victim = server if server.state().bound_to else stage.servers["sbx-2"]
    victim.process.kill()
    victim.process.wait()
    with pytest.raises(Discarded, match='"masked"'):
        await rollout.call("shell", {"command": "echo two"})
    assert rollout.shown == ["one\n"]
    assert rollout.attempts == 1 + 1 + RETRIES


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
    rollout = trained(Caller(gateway(parts(Losing(stage.use_cases, RETRIES)), checks=all_is_well)))
    assert await rollout.call("shell", {"command": "echo x >> f; cat f"}) == "x\n"
    assert rollout.attempts == 1 + RETRIES
    assert await rollout.call("shell", {"command": "cat f"}) == "x\n"


async def test_a_retry_at_another_gateway_gets_the_same_result(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    other = Caller(gateway(parts(await stage.gateway()), checks=all_is_well))
    replies = [
        await one(
            "POST", TOOLS, {"name": "shell", "arguments": '{"command":"date +%N"}', "trace_id": "t", "call_id": "c"}
        )
        for one in (ask, other)
    ]
    assert replies[0].body == replies[1].body


async def test_grading_fails_in_a_way_that_scores_nobody(ask: Caller) -> None:
    reply = await ask("POST", TOOLS.replace("tools", "grade"), {"sample": {"output_text": "42"}, "trace_id": "t"})
    assert reply.status == 503
    assert "score" not in reply.json()
