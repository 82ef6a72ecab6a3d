"""Agent RFT's routes from request to answer, over scripted use cases."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from rollcage.core.errors import CallConflict, ClaimTimedOut, StoreUnavailable
from rollcage.core.verdict_words import Cause
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits
from rollcage.gateway.tenants import Quotas
from rollcage.rollouts.actions import Action, Answer, Outcome
from rollcage.rollouts.errors import Masked
from support.environments import environment
from support.gateways import BEARER, THEIRS, TOKEN, Caller, all_is_well, parts
from support.scripted_use_cases import Scripted, answered

TOOLS = "/agent-rft/environments/small/tools"
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "shell",
    "arguments": '{"command":"ls"}',
    "trace_id": "trace_1",
    "item": {},
}


class Fixture:
    def __init__(self, use_cases: Scripted | None = None, **changes: Any) -> None:
        self.use_cases = use_cases or Scripted()
        self.parts = parts(self.use_cases, **changes)
        self.ask = Caller(gateway(self.parts, checks=all_is_well))


def failing(error: Exception) -> Scripted:
    async def fail(_action: Action) -> Answer:
        raise error

    return Scripted(fail)


async def test_a_call_is_answered_in_the_platforms_shape() -> None:
    fixture = Fixture()
    reply = await fixture.ask("POST", TOOLS, CALL)
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    assert reply.json() == {
        "type": "function_call_output",
        "call_id": "call_1",
        "id": "fc_1",
        "output": '{"command":"ls"}',
    }


async def test_a_call_becomes_an_action_of_the_tenants_rollout() -> None:
    fixture = Fixture()
    await fixture.ask("POST", "/agent-rft/runs/job-7/environments/small/tools", CALL)
    (action,) = fixture.use_cases.actions
    assert (action.rollout.tenant, action.rollout.name, action.run) == ("ours", "trace_1", "job-7")
    assert (action.environment.name, action.call_id, action.tool) == ("small", "call_1", "shell")
    assert action.within < timedelta(minutes=10)
    assert fixture.use_cases.ended == []


async def test_the_item_names_the_environment_where_the_path_does_not() -> None:
    fixture = Fixture(environments={"small": environment(), "swe": environment("swe")})
    await fixture.ask("POST", "/agent-rft/tools", {**CALL, "item": {"environment": "swe"}})
    assert fixture.use_cases.actions[0].environment.name == "swe"


async def test_the_token_may_stand_in_the_path() -> None:
    fixture = Fixture()
    reply = await fixture.ask("POST", f"/agent-rft/tokens/{TOKEN}/environments/small/tools", CALL, headers={})
    assert reply.status == 200


async def test_two_tenants_may_use_the_same_rollout_id_and_never_meet() -> None:
    fixture = Fixture()
    await fixture.ask("POST", TOOLS, CALL)
    await fixture.ask("POST", TOOLS, CALL, headers={"authorization": f"Bearer {THEIRS}"})
    ours, theirs = (action.rollout.key for action in fixture.use_cases.actions)
    assert ours != theirs


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong-" + "x" * 40}, {"authorization": TOKEN}, {"authorization": f"Basic {TOKEN}"}],
    ids=["no token", "a wrong one", "no scheme", "another scheme"],
)
async def test_without_a_valid_token_nothing_is_looked_at(headers: dict[str, str]) -> None:
    fixture = Fixture()
    reply = await fixture.ask("POST", TOOLS, b"not even json", headers=headers)
    assert reply.code == (401, "not_authorized")
    assert fixture.use_cases.actions == []
    assert TOKEN not in reply.body.decode()


async def test_a_probe_gets_a_rollout_of_its_own_that_is_finished_afterwards() -> None:
    fixture = Fixture()
    for _ in range(2):
        reply = await fixture.ask("POST", f"{TOOLS}/shell", {"arguments": '{"command":"ls"}'})
        assert reply.json()["output"] == '{"command":"ls"}'
    first, second = (action.rollout for action in fixture.use_cases.actions)
    assert first != second
    assert [(how, rollout) for how, rollout, *_ in fixture.use_cases.ended] == [("finish", first), ("finish", second)]


async def test_a_probe_that_fails_is_finished_too() -> None:
    fixture = Fixture(failing(ClaimTimedOut(environment="small", waited=1, retry_after=1)))
    reply = await fixture.ask("POST", f"{TOOLS}/shell", {"arguments": "{}"})
    assert reply.code == (503, "claim_timed_out")
    assert len(fixture.use_cases.ended) == 1


async def test_a_probe_is_answered_even_if_it_cannot_be_finished() -> None:
    class Unfinishing(Scripted):
        async def finish(self, *_: Any, **__: Any) -> Any:
            raise StoreUnavailable

    reply = await Fixture(Unfinishing()).ask("POST", f"{TOOLS}/shell", {"arguments": "{}"})
    assert reply.status == 200


@pytest.mark.parametrize("outcome", Outcome)
async def test_whatever_a_call_came_to_is_a_200(outcome: Outcome) -> None:
    async def act(_action: Action) -> Answer:
        return answered("[exit code 1]", outcome)

    reply = await Fixture(Scripted(act)).ask("POST", TOOLS, CALL)
    assert (reply.status, reply.json()["output"]) == (200, "[exit code 1]")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Masked(cause=Cause.NODE_LOST), (503, "masked")),
        (StoreUnavailable("Redis at 10.0.0.1"), (503, "store_unavailable")),
        (RuntimeError("a bug"), (500, "internal")),
    ],
    ids=["masked", "store away", "a bug"],
)
async def test_what_the_infrastructure_did_is_a_5xx_that_tells_no_secrets(error: Exception, code: Any) -> None:
    reply = await Fixture(failing(error)).ask("POST", TOOLS, CALL)
    assert reply.code == code
    assert "output" not in reply.json()
    assert "10.0.0.1" not in reply.body.decode()
    assert "a bug" not in reply.body.decode()


async def test_a_conflict_is_told_to_the_model_as_a_text() -> None:
    reply = await Fixture(failing(CallConflict(rollout="r", call="c"))).ask("POST", TOOLS, CALL)
    assert reply.status == 200
    assert "other arguments" in reply.json()["output"]


@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("/agent-rft/environments/gone/tools", {}),
        ("/agent-rft/tools", {"environment": "gone"}),
        ("/agent-rft/tools", {}),
    ],
)
async def test_an_unknown_environment_is_a_503_since_it_may_be_us_who_do_not_know_it_yet(path: str, item: Any) -> None:
    reply = await Fixture().ask("POST", path, {**CALL, "item": item})
    assert reply.code == (503, "environment_unknown")


async def test_a_hostile_rollout_id_is_a_400_and_nothing_is_done() -> None:
    fixture = Fixture()
    reply = await fixture.ask("POST", TOOLS, {**CALL, "trace_id": "../x"})
    assert reply.code == (400, "bad_id")
    assert fixture.use_cases.actions == []


async def test_a_call_without_a_name_goes_to_the_only_tool() -> None:
    fixture = Fixture(environments={"small": environment(tools={"builtin": ["list"]})})
    await fixture.ask("POST", TOOLS, {"trace_id": "t"})
    assert fixture.use_cases.actions[0].tool == "list"


async def test_a_body_above_the_bound_is_refused_with_the_bound() -> None:
    fixture = Fixture(limits=Limits(rft_body_bytes=1000))
    reply = await fixture.ask("POST", TOOLS, {**CALL, "arguments": "x" * 1000})
    assert reply.code == (413, "body_too_large")
    assert "1000 bytes" in reply.json()["detail"]
    assert b'rollcage_requests_refused_total{limit="body"} 1.0' in fixture.parts.metrics.exposition()
    assert fixture.use_cases.actions == []


async def test_a_megabyte_is_taken() -> None:
    reply = await Fixture().ask("POST", TOOLS, {**CALL, "arguments": "x" * 1_000_000})
    assert reply.status == 200


async def test_a_compressed_body_is_refused_unread() -> None:
    reply = await Fixture().ask("POST", TOOLS, CALL, headers={**BEARER, "content-encoding": "gzip"})
    assert reply.code == (415, "body_encoded")


@pytest.mark.parametrize("path", ["/agent-rft/", "/agent-rft/tools/a/b", "/agent-rft/environments/small"])
async def test_a_wrong_path_says_what_a_right_one_is(path: str) -> None:
    reply = await Fixture().ask("POST", path, CALL)
    assert reply.code == (404, "no_such_route")
    assert "/tools" in reply.json()["detail"]


async def test_only_post_is_served() -> None:
    assert (await Fixture().ask("GET", TOOLS)).code == (405, "wrong_method")


async def test_a_gateway_without_graders_refuses_and_never_gives_a_number() -> None:
    reply = await Fixture().ask("POST", "/agent-rft/environments/small/grade", {"sample": {}, "item": {}})
    assert reply.code == (503, "no_grader")
    assert "score" not in reply.json()


async def test_calls_beyond_the_quota_are_refused_with_a_503_and_the_places_come_back() -> None:
    release = asyncio.Event()

    async def wait(_action: Action) -> Answer:
        await release.wait()
        return answered("done")

    fixture = Fixture(Scripted(wait), quotas=Quotas(in_flight_calls=1))
    first = asyncio.create_task(fixture.ask("POST", TOOLS, CALL))
    await asyncio.sleep(0)
    assert (await fixture.ask("POST", TOOLS, CALL)).code == (503, "tenant_busy")
    other = asyncio.create_task(fixture.ask("POST", TOOLS, CALL, headers={"authorization": f"Bearer {THEIRS}"}))
    release.set()
    assert (await first).status == 200
    assert (await other).status == 200
    assert (await fixture.ask("POST", TOOLS, CALL)).status == 200
    assert fixture.parts.admission.in_flight == 0


async def test_calls_beyond_what_the_gateway_bears_are_told_to_come_back() -> None:
    fixture = Fixture(limits=Limits(in_flight_calls=0))
    reply = await fixture.ask("POST", TOOLS, CALL)
    assert reply.code == (503, "overloaded")
    assert reply.headers["retry-after"] == "1"


async def test_a_refusal_is_logged_with_what_it_was_about_and_without_the_token() -> None:
    fixture = Fixture(failing(Masked(cause=Cause.EVICTED)))
    with capture_logs() as logs:
        await fixture.ask("POST", f"/agent-rft/tokens/{TOKEN}/environments/small/tools", CALL, headers={})
    assert [log["event"] for log in logs] == ["call_refused"]
    assert TOKEN not in json.dumps(logs)


async def test_requests_are_counted_by_their_status() -> None:
    fixture = Fixture()
    await fixture.ask("POST", TOOLS, CALL)
    await fixture.ask("POST", TOOLS, CALL, headers={})
    # An answer is counted once it is on its way.
    await asyncio.sleep(0)
    exposed = fixture.parts.metrics.exposition().decode()
    assert 'rollcage_requests_total{dialect="agent_rft",status="2xx"} 1.0' in exposed
    assert 'rollcage_requests_total{dialect="agent_rft",status="4xx"} 1.0' in exposed
    assert 'rollcage_auth_failures_total{reason="missing"} 1.0' in exposed


async def test_a_client_that_hangs_up_in_its_request_leaves_no_trace() -> None:
    fixture = Fixture()

    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_message: Any) -> None:
        raise AssertionError

    scope = {
        "type": "http",
        "path": TOOLS,
        "method": "POST",
        "headers": [(b"authorization", f"Bearer {TOKEN}".encode())],
    }
    await fixture.ask.app(scope, gone, send)
    assert fixture.parts.admission.in_flight == 0
    assert fixture.use_cases.actions == []
