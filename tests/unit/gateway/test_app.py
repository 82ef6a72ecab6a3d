"""What the application answers beside tool calls: operations, environments, problems, its own description."""

from __future__ import annotations

from typing import Any

import pytest

from rollcage.gateway.app import gateway
from rollcage.gateway.definitions import is_strict
from rollcage.gateway.ports import Limits
from support.environments import environment
from support.gateways import BEARER, TOKEN, Caller, all_is_well, parts

LINT = {
    "name": "lint",
    "description": "Look for mistakes.",
    "command": ["/opt/lint"],
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
}


def caller(**changes: Any) -> Caller:
    return Caller(gateway(parts(**changes), checks=all_is_well))


async def test_the_process_says_that_it_serves() -> None:
    assert (await caller()("GET", "/healthz")).json() == {"status": "ok"}


async def test_it_is_ready_when_everything_was_seen_once_and_stays_so_without_redis() -> None:
    store = {"store": False, "keys": True}

    async def checks() -> dict[str, bool]:
        return dict(store)

    ask = Caller(gateway(parts(), checks=checks))
    assert (await ask("GET", "/readyz")).status == 503
    store["store"] = True
    assert (await ask("GET", "/readyz")).status == 200
    store["store"] = False
    later = await ask("GET", "/readyz")
    assert (later.status, later.json()["checks"]["store"]) == (200, False)


async def test_it_is_not_ready_while_it_drains() -> None:
    made = parts()
    ask = Caller(gateway(made, checks=all_is_well))
    made.admission.drain()
    reply = await ask("GET", "/readyz")
    assert (reply.status, reply.json()["draining"], reply.headers["connection"]) == (503, True, "close")


async def test_metrics_are_exposed() -> None:
    reply = await caller()("GET", "/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert b"# TYPE rollcage_calls_total counter" in reply.body


@pytest.mark.parametrize(
    ("method", "target", "body", "code"),
    [
        ("GET", "/nowhere", None, (404, "no_such_route")),
        ("PUT", "/healthz", None, (405, "wrong_method")),
        ("GET", "/v1/rollouts/a%20b", None, (400, "bad_request")),
        ("GET", "/v1/rollouts?limit=0", None, (400, "bad_request")),
        ("GET", "/v1/rollouts?label=odd", None, (400, "bad_request")),
        ("GET", "/v1/rollouts/r1", None, (404, "rollout_unknown")),
        ("GET", "/v1/environments/gone", None, (404, "environment_unknown")),
        ("GET", "/v1/environments/..%2Fx", None, (404, "no_such_route")),
        ("POST", "/v1/rollouts/r/calls", b"{", (400, "bad_request")),
        ("POST", "/v1/rollouts/r/calls", {"tool": "shell"}, (400, "bad_request")),
        (
            "POST",
            "/v1/rollouts/r/calls",
            {"tool": "shell", "environment": "small", "odd": 1},
            (400, "bad_request"),
        ),
        ("POST", "/v1/rollouts/r/calls", {"tool": "shell", "environment": "gone"}, (404, "environment_unknown")),
        ("POST", "/v1/rollouts/r/calls", b"x" * 5_000_000, (413, "body_too_large")),
    ],
)
async def test_what_is_wrong_with_a_request_is_told_as_a_problem(
    method: str, target: str, body: Any, code: tuple[int, str]
) -> None:
    assert (await caller()(method, target, body)).code == code


@pytest.mark.parametrize("target", ["/v1/rollouts", "/v1/runs", "/v1/environments", "/v1/rollouts/r1"])
async def test_without_a_token_nothing_is_told(target: str) -> None:
    reply = await caller()("GET", target, headers={})
    assert reply.code == (401, "not_authorized")
    assert reply.headers["www-authenticate"].startswith("Bearer")


async def test_beyond_what_the_gateway_bears_requests_are_told_to_come_back() -> None:
    reply = await caller(limits=Limits(in_flight_calls=0))("GET", "/v1/runs")
    assert reply.code == (503, "overloaded")
    assert reply.headers["retry-after"] == "1"


async def test_a_compressed_body_is_refused() -> None:
    reply = await caller()("POST", "/v1/rollouts/r/calls", {}, headers={**BEARER, "content-encoding": "gzip"})
    assert reply.code == (415, "body_encoded")


async def test_environments_are_listed_with_what_a_trainer_needs() -> None:
    ask = caller(environments={"swe": environment("swe", tools={"builtin": ["shell"], "custom": [LINT]})})
    (one,) = (await ask("GET", "/v1/environments")).json()["environments"]
    assert (one["name"], one["tools"], one["limits"]["maxTimeoutSeconds"]) == ("swe", ["shell", "lint"], 540)
    assert (await ask("GET", "/v1/environments/swe")).json() == one


async def test_tools_are_defined_in_each_form_that_a_trainer_wants() -> None:
    ask = caller(environments={"swe": environment("swe", tools={"builtin": ["shell"], "custom": [LINT]})})

    async def tools(form: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (await ask("GET", f"/v1/environments/swe/tools?form={form}&run=r1")).json()[
            "tools"
        ]
        return found

    shell, lint = await tools("chat_completions")
    assert lint == {
        "type": "function",
        "function": {
            "name": "lint",
            "description": "Look for mistakes.",
            "parameters": LINT["parameters"],
            "strict": True,
        },
    }
    assert (shell["function"]["name"], shell["function"]["strict"]) == ("shell", False)
    assert (await tools("responses"))[1] == {"type": "function", **lint["function"]}
    (job, _) = await tools("job")
    assert job["server_url"] == "http://test/agent-rft/runs/r1/environments/swe/tools"
    assert job["headers"] == {"Authorization": "Bearer $ROLLCAGE_TOKEN"}
    assert TOKEN not in str(job)


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"type": "object"}, False),
        ({"type": "object", "additionalProperties": False}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}, True),
        (
            {
                "type": "object",
                "properties": {"a": {"type": "object"}},
                "required": ["a"],
                "additionalProperties": False,
            },
            False,
        ),
    ],
)
def test_a_schema_is_strict_only_if_strict_trainers_would_take_it(schema: Any, strict: bool) -> None:  # noqa: FBT001
    assert is_strict(schema) is strict


async def test_the_description_has_every_route() -> None:
    described = (await caller()("GET", "/openapi.json")).json()
    assert described["openapi"].startswith("3.1")
    for path in (
        "/agent-rft/environments/{environment}/tools",
        "/agent-rft/tokens/{token}/runs/{run}/environments/{environment}/grade",
        "/v1/rollouts/{rollout}/calls",
        "/v1/rollouts/{rollout}/trajectory.jsonl",
        "/v1/runs/{run}/health",
        "/v1/environments/{environment}/tools",
        "/healthz",
        "/readyz",
        "/metrics",
    ):
        assert path in described["paths"], path


async def test_every_reference_in_the_description_leads_somewhere() -> None:
    described = (await caller()("GET", "/openapi.json")).json()
    schemas = described["components"]["schemas"]

    def references(node: Any) -> Any:
        if isinstance(node, dict):
            yield from ([node["$ref"]] if "$ref" in node else [])
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    missing = {ref for ref in references(described) if ref.removeprefix("#/components/schemas/") not in schemas}
    assert missing == set()
    assert "Token" in described["components"]["securitySchemes"]
