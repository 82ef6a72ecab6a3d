"""
Read what an Agent RFT trainer sends: the address, then the body.

Pure. Every field may be missing and unknown ones are ignored, because trainers
differ and people try things with curl; what is there but cannot be meant is
refused.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

import orjson

from rollcage.core.ids import trainers_id
from rollcage.core.values import value
from rollcage.gateway.errors import BadRequest
from rollcage.grading.protocol import Answer
from rollcage.rollouts.arguments import whole

PREFIX: Final = "/agent-rft/"

# Rollouts of trainers that name no run have one in common.
DEFAULT_RUN: Final = "default"

# Echoed and nothing else; long enough for every trainer's ids.
_LONGEST_ECHO: Final = 512


class Task(StrEnum):
    """What is asked."""

    TOOL = "tools"
    GRADE = "grade"


@dataclass(frozen=True, slots=True)
class Address:
    """What a URL says: each part may be missing but the task."""

    task: Task
    token: str | None = None
    run: str = DEFAULT_RUN
    environment: str | None = None
    tool: str | None = None


@value
class ToolCall:
    """
    What a tool call says.

    *rollout* is None for a person's probe. *call_id* is what the call is known
    by inside the service, *id* and *echo* are sent back.
    """

    rollout: str | None
    call_id: str
    id: str
    echo: str
    tool: str | None
    arguments: Any
    environment: str | None


@dataclass(frozen=True, slots=True)
class GradeCall:
    """What a request for a score says; *rollout* is None for a person who tries the grader."""

    rollout: str | None
    environment: str | None
    answer: Answer
    item: dict[str, Any]


@lru_cache(maxsize=1024)
def read_address(path: str) -> Address | None:
    """
    Read ``/agent-rft[/tokens/T][/runs/R][/environments/E]/tools[/NAME]`` or the same with ``/grade``, else None.

    Every part has its keyword before it, so that no environment, run or tool can be taken for another.
    """
    if not path.startswith(PREFIX):
        return None
    parts = path[len(PREFIX) :].split("/")
    given: dict[str, str] = {}
    for keyword, name in (("tokens", "token"), ("runs", "run"), ("environments", "environment")):
        if len(parts) > 1 and parts[0] == keyword:
            given[name] = parts[1]
            parts = parts[2:]
    if not all(given.values()):
        return None
    match parts:
        case [Task.TOOL.value]:
            return Address(Task.TOOL, **given)
        case [Task.TOOL.value, tool] if tool:
            return Address(Task.TOOL, **given, tool=tool)
        case [Task.GRADE.value]:
            return Address(Task.GRADE, **given)
        case _:
            return None


def read_call(body: bytes, address: Address, *, fresh: Callable[[], str]) -> ToolCall:
    """
    Read a tool call; *fresh* makes an id that nobody has used.

    A call is known by its ``call_id``. Without one it is known by its ``id``,
    which a trainer's retry repeats too: taking it for a new call would run it
    twice, while the worst that can happen the other way is that a person who
    repeats an id by hand gets the first answer again. Without either, each
    request is a call of its own. A probe has its rollout to itself, so there
    every call is new.
    """
    fields = _object(body)
    rollout, call_id, own_id = _id(fields, "trace_id"), _id(fields, "call_id"), _text(fields, "id")
    if call_id is not None:
        known_by = call_id
    elif own_id is not None and rollout is not None:
        # Told apart from call ids: the same text in another field is another call.
        known_by = trainers_id("id", f"id:{own_id}")
    else:
        known_by = fresh()
    echo = call_id or known_by
    arguments = fields.get("arguments")
    return ToolCall(
        rollout=rollout,
        call_id=known_by,
        id=own_id or echo,
        echo=echo,
        tool=_tool(address.tool or fields.get("name")),
        arguments={} if arguments is None else arguments,
        environment=address.environment or _environment(fields.get("item")),
    )


def read_grade(body: bytes, address: Address) -> GradeCall:
    """Read a request for a score."""
    fields = _object(body)
    rollout = _id(fields, "trace_id")
    item = fields.get("item")
    return GradeCall(
        rollout=rollout,
        environment=address.environment or _environment(item),
        answer=answer_in(fields.get("sample")),
        item=item if isinstance(item, dict) else {},
    )


def answer_in(sample: Any) -> Answer:
    """Return the final answer of a sample; one that is not there is empty, which is the model's own doing."""
    if not isinstance(sample, dict):
        raise BadRequest("there is no sample")
    text, given = sample.get("output_text"), sample.get("output_json")
    if not isinstance(text, str):
        text = _last_message(sample.get("choices")) or _spelled(given)
    return Answer.of(text, given)


def only_tool(call: ToolCall, tools: tuple[str, ...]) -> ToolCall:
    """Let a call that names no tool mean the only one there is."""
    return replace(call, tool=tools[0]) if len(tools) == 1 else call


def _last_message(choices: Any) -> str:
    try:
        content = choices[0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return ""
    if isinstance(content, list):
        # In parts, as chat completions may have it.
        texts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _spelled(given: Any) -> str:
    try:
        return "" if given is None else orjson.dumps(given).decode()
    except orjson.JSONEncodeError:
        # Deeper than anybody's format.
        return ""


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        fields = _leniently(body)
    if not isinstance(fields, dict):
        raise BadRequest("the body is not a JSON object")
    return fields


def _leniently(body: bytes) -> Any:
    # The strict parser refuses half a surrogate pair, which a model may well write; it is an argument like any other.
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None


def _text(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST_ECHO or not value.isprintable():
        raise BadRequest(f"{name} is not a short text")
    return value


def _id(fields: dict[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise BadRequest(f"{name} is not a short text")
    return trainers_id(name, value)


def _tool(name: Any) -> str | None:
    # The model chose it: whatever it is, it is looked for, not found, and the model is told.
    if name is None or name == "":
        return None
    if not isinstance(name, str):
        raise BadRequest("name is not a text")
    return whole(name[:_LONGEST_ECHO])


def _environment(item: Any) -> str | None:
    named = item.get("environment") if isinstance(item, dict) else None
    return named if isinstance(named, str) and named else None
