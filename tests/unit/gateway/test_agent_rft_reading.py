"""What an Agent RFT request means, in a table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rollcage.core.ids import BadId
from rollcage.gateway.dialects.agent_rft.reading import (
    Address,
    Task,
    ToolCall,
    answer_in,
    only_tool,
    read_address,
    read_call,
)
from rollcage.gateway.errors import BadRequest

TRACE = "trace_0123456789abcdef0123456789abcdef"
FULL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "shell",
    "arguments": '{"command":"ls"}',
    "trace_id": TRACE,
    "item": {"environment": "swe", "question": "?"},
}

ADDRESSES = {
    "/agent-rft/tools": Address(Task.TOOL),
    "/agent-rft/tools/shell": Address(Task.TOOL, tool="shell"),
    "/agent-rft/grade": Address(Task.GRADE),
    "/agent-rft/environments/swe/tools": Address(Task.TOOL, environment="swe"),
    "/agent-rft/environments/tools/tools/tools": Address(Task.TOOL, environment="tools", tool="tools"),
    "/agent-rft/runs/r1/environments/swe/tools/shell": Address(Task.TOOL, run="r1", environment="swe", tool="shell"),
    "/agent-rft/tokens/T/tools": Address(Task.TOOL, token="T"),  # noqa: S106
    "/agent-rft/tokens/tools/runs/grade/grade": Address(Task.GRADE, token="tools", run="grade"),  # noqa: S106
    "/agent-rft/tokens/T/runs/r1/environments/swe/grade": Address(
        Task.GRADE,
        token="T",  # noqa: S106
        run="r1",
        environment="swe",
    ),
}


@pytest.mark.parametrize("path", ADDRESSES)
def test_an_address_is_read(path: str) -> None:
    assert read_address(path) == ADDRESSES[path]


@pytest.mark.parametrize(
    "path",
    [
        "/agent-rft/",
        "/agent-rft",
        "/agent-rft/tools/",
        "/agent-rft/tools/a/b",
        "/agent-rft//tools",
        "/agent-rft/runs//tools",
        "/agent-rft/environments/swe",
        "/agent-rft/environments/swe/runs/r1/tools",
        "/agent-rft/grade/x",
        "/agent-rft/../v1/rollouts",
        "//host/agent-rft/tools",
        "/v1/rollouts",
    ],
)
def test_what_is_no_address_is_none(path: str) -> None:
    assert read_address(path) is None


def read(fields: Any, address: Address = ADDRESSES["/agent-rft/tools"]) -> ToolCall:
    body = fields if isinstance(fields, bytes) else json.dumps(fields).encode()
    return read_call(body, address, fresh=lambda: "fresh")


def test_a_whole_call_is_read() -> None:
    assert read(FULL) == ToolCall(
        rollout=TRACE,
        call_id="call_1",
        id="fc_1",
        echo="call_1",
        tool="shell",
        arguments='{"command":"ls"}',
        environment="swe",
    )


def test_the_example_that_sends_only_arguments_is_a_probe() -> None:
    call = read({"arguments": '{"query":"x"}'}, Address(Task.TOOL, environment="swe", tool="search"))
    assert (call.rollout, call.tool, call.environment) == (None, "search", "swe")
    assert (call.call_id, call.echo, call.id) == ("fresh", "fresh", "fresh")


@pytest.mark.parametrize("missing", FULL)
def test_every_field_may_be_missing_or_null(missing: str) -> None:
    without = {name: value for name, value in FULL.items() if name != missing}
    assert read(without) == read({**FULL, missing: None})


@pytest.mark.parametrize(
    ("arguments", "meaning"),
    [
        ('{"command":"ls"}', '{"command":"ls"}'),
        ({"command": "ls"}, {"command": "ls"}),
        ("no json at all", "no json at all"),
        ([1], [1]),
        (None, {}),
        ("", ""),
    ],
)
def test_arguments_are_passed_on_as_they_came(arguments: Any, meaning: Any) -> None:
    assert read({**FULL, "arguments": arguments}).arguments == meaning


def test_unknown_fields_are_ignored() -> None:
    assert read({**FULL, "server_url": "https://x", "headers": {"a": "b"}, "new": [1]}) == read(FULL)


@pytest.mark.parametrize(
    ("fields", "call_id"),
    [
        ({"call_id": "c", "id": "i", "trace_id": "t"}, "c"),
        ({"id": "i", "trace_id": "t"}, "id:i"),
        ({"trace_id": "t"}, "fresh"),
        ({"id": "i"}, "fresh"),
        ({"call_id": "c"}, "c"),
    ],
    ids=[
        "by its call id",
        "by its own id where it has no call id, so that a retry is known again",
        "by nothing: each is new",
        "a probe's own id names nothing, since every probe has a rollout of its own",
        "a probe's call id",
    ],
)
def test_what_a_call_is_known_by(fields: dict[str, Any], call_id: str) -> None:
    assert read(fields).call_id == call_id


def test_the_same_text_as_id_and_as_call_id_names_two_calls() -> None:
    assert read({"trace_id": "t", "id": "x"}).call_id != read({"trace_id": "t", "call_id": "x"}).call_id


def test_what_is_echoed_is_what_came() -> None:
    call = read({"trace_id": "t", "id": "fc 1/ä"} | {"call_id": "c"})
    assert (call.id, call.echo) == ("fc 1/ä", "c")


def test_the_path_counts_before_the_body() -> None:
    call = read(FULL, Address(Task.TOOL, environment="other", tool="list"))
    assert (call.environment, call.tool) == ("other", "list")


@pytest.mark.parametrize("item", [None, "swe", ["swe"], {}, {"environment": 7}, {"environment": ""}])
def test_an_item_that_names_no_environment_names_none(item: Any) -> None:
    assert read({**FULL, "item": item}).environment is None


@pytest.mark.parametrize("trace", ["../x", "a\nb", "k:*", "tr\u0430ce", "x" * 300, "a b"])
def test_a_hostile_rollout_id_is_refused(trace: str) -> None:
    with pytest.raises((BadId, BadRequest)):
        read({**FULL, "trace_id": trace})


def test_an_empty_rollout_id_is_none() -> None:
    assert read({**FULL, "trace_id": ""}).rollout is None


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b'"x"', b"{", b"\xff", b"[" * 100_000, b'{"trace_id":7}', b'{"id":{}}', b'{"name":[]}'],
)
def test_what_is_no_call_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        read(body)


def test_half_a_surrogate_pair_in_the_arguments_is_an_argument_like_any_other() -> None:
    assert read(b'{"arguments":"\\ud800"}').arguments == "\ud800"


@pytest.mark.parametrize("name", ["no such tool", "x" * 10_000, "\ud800", "rm -rf /\n"])
def test_any_text_may_be_a_tools_name(name: str) -> None:
    tool = read({**FULL, "name": name}).tool
    assert tool is not None
    assert len(tool.encode()) <= 512


def test_a_call_without_a_name_means_the_only_tool_there_is() -> None:
    nameless = read({"trace_id": "t"})
    assert only_tool(nameless, ("cat",)).tool == "cat"
    assert only_tool(nameless, ("cat", "list")).tool is None


@pytest.mark.parametrize(
    ("sample", "text"),
    [
        ({"output_text": "a", "choices": [{"message": {"content": "b"}}]}, "a"),
        ({"output_text": "", "choices": [{"message": {"content": "b"}}]}, ""),
        ({"choices": [{"message": {"content": "b"}}], "output_json": 1}, "b"),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "b"}, 7, {"text": None}]}}]}, "b"),
        ({"output_json": {"a": [1]}}, '{"a":[1]}'),
        ({"choices": [{"message": {"content": None}}]}, ""),
        ({"choices": "no", "output_json": None}, ""),
        ({}, ""),
    ],
    ids=[
        "the text itself",
        "an empty one is the model's",
        "the message",
        "a message in parts",
        "the JSON, spelled",
        "a message without content",
        "nothing of use",
        "nothing",
    ],
)
def test_the_final_answer_is_the_first_that_is_there(sample: dict[str, Any], text: str) -> None:
    assert answer_in(sample).text == text


def test_json_that_nobody_can_spell_is_no_answer() -> None:
    assert answer_in({"output_json": json.loads("[" * 400 + "]" * 400)}).text == ""
