"""Requests as trainers, their example client and people with curl send them, each in its own shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.gateways import BEARER, TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contract.agent_rft.platform import Job
    from support.stage import Stage

TOOLS = "/agent-rft/environments/small/tools"
REQUESTS: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("requests.json").read_text())
SAMPLES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("samples.json").read_text())


def call(**fields: Any) -> dict[str, Any]:
    arguments = '{"command":"echo hello"}'
    return {"name": "shell", "arguments": arguments, "trace_id": "trace_1", "call_id": "call_1", **fields}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_as_trainers_send_it_is_answered(job: Job, stage: Stage, name: str) -> None:
    await stage.sandbox("sbx-1")
    request = REQUESTS[name]
    headers = BEARER | request.get("headers", {})
    reply = await job.http.post(request["path"], content=json.dumps(request["body"]), headers=headers)
    answer = reply.json()
    assert (reply.status_code, answer["output"]) == (200, "hello\n")
    # The example's client reads output, else result.output.
    assert set(answer) == {"type", "call_id", "id", "output"}
    for echoed in ("id", "call_id"):
        assert answer[echoed] == (request["body"].get(echoed) or answer[echoed])


async def test_a_body_that_comes_in_pieces_of_unknown_number_is_read(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    async def pieces() -> AsyncIterator[bytes]:
        body = json.dumps(call()).encode()
        for start in range(0, len(body), 7):
            yield body[start : start + 7]

    reply = await job.http.post(TOOLS, content=pieces(), headers=BEARER)
    assert reply.request.headers["transfer-encoding"] == "chunked"
    assert (reply.status_code, reply.json()["output"]) == (200, "hello\n")


async def test_a_dataset_row_of_nearly_a_megabyte_is_taken(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    body = json.dumps(call(item={"document": "x" * (1_000_000 - 200)}))
    assert 999_000 < len(body) <= 1_000_000
    reply = await job.http.post(TOOLS, content=body, headers=BEARER)
    assert reply.json()["output"] == "hello\n"


async def test_the_token_may_stand_in_the_path_beside_headers_of_others(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    path = TOOLS.replace("/agent-rft", f"/agent-rft/tokens/{TOKEN}")
    for headers in ({}, {"Authorization": "Bearer somebody-else"}, {"X-Functions-Key": "key"}):
        reply = await job.http.post(path, json=call(), headers=headers)
        assert (reply.status_code, reply.json()["output"]) == (200, "hello\n")


async def test_bare_arguments_are_told_what_is_missing(job: Job, stage: Stage) -> None:
    # A person's mistake, or the habit of another sample's tool.
    await stage.sandbox("sbx-1")
    reply = await job.http.post(f"{TOOLS}/shell", json={"command": "echo hello"}, headers=BEARER)
    assert reply.status_code == 200
    assert '"command" is required' in reply.json()["output"]


@pytest.mark.parametrize("name", SAMPLES)
async def test_a_final_answer_is_found_in_whatever_shape_it_comes(job: Job, name: str) -> None:
    for answer, score in (("42", 1.0), ("43", 0.0)):
        request = {"sample": SAMPLES[name], "item": {"reference_answer": answer}}
        reply = await job.ask_grader(request)
        assert (reply.status_code, reply.json()) == (200, {"score": score})


@pytest.mark.parametrize(
    "sample",
    [
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": None, "tool_calls": []}}]},
        {"choices": [], "output_text": None, "output_json": None},
        {"choices": [{"message": {"content": None, "tool_calls": [{"id": "call_1", "type": "function"}]}}]},
        {"output_text": ""},
    ],
    ids=["a message without content", "no message at all", "calls instead of an answer", "an empty text"],
)
async def test_a_model_that_gave_no_answer_is_scored(job: Job, sample: dict[str, Any]) -> None:
    reply = await job.ask_grader({"sample": sample, "item": {"reference_answer": "42"}, "trace_id": None})
    assert (reply.status_code, reply.json()) == (200, {"score": 0.0})
