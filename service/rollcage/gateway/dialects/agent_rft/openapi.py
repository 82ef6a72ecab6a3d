"""
Describe Agent RFT's routes, which the framework does not know of.

By hand, and checked against the real routes by a test that follows it.
"""

from collections.abc import Callable
from typing import Any, Final

_TEXT: Final = {"type": "string"}

_TOOL_CALL: Final = {
    "type": "object",
    "description": "A tool call. Every field may be missing, unknown ones are ignored.",
    "properties": {
        "type": {**_TEXT, "example": "function_call"},
        "id": {**_TEXT, "description": "Echoed; names the call where call_id is missing."},
        "call_id": {**_TEXT, "pattern": "^[A-Za-z0-9_.:-]{1,200}$", "description": "Names the call: it runs once."},
        "name": {**_TEXT, "description": "The tool, unless the path names it."},
        "arguments": {
            "description": "The tool's arguments: a JSON text, or the object itself.",
            "anyOf": [_TEXT, {"type": "object"}],
        },
        "trace_id": {
            **_TEXT,
            "pattern": "^[A-Za-z0-9_.:-]{1,200}$",
            "description": "The rollout. Without it the call is a probe in a rollout of its own.",
        },
        "item": {
            "type": "object",
            "description": "The dataset row; its environment counts where the path names none.",
        },
    },
}
_OUTPUT: Final = {
    "type": "object",
    "required": ["type", "call_id", "id", "output"],
    "properties": {
        "type": {"const": "function_call_output"},
        "call_id": _TEXT,
        "id": _TEXT,
        "output": {**_TEXT, "description": "What the model is shown."},
    },
}
_GRADE: Final = {
    "type": "object",
    "description": "What the endpoint grader is asked. Unknown fields are ignored.",
    "required": ["sample"],
    "properties": {
        "sample": {
            "type": "object",
            "description": "The final answer.",
            "properties": {"output_text": _TEXT, "output_json": {}},
        },
        "item": {"type": "object", "description": "The dataset row."},
        "trace_id": {
            **_TEXT,
            "pattern": "^[A-Za-z0-9_.:-]{1,200}$",
            "description": "The rollout. Without it the grader is tried on the answer alone.",
        },
    },
}
_SCORE: Final = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "number", "description": "A finite number of the declared range."}},
}
PROBLEM: Final = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": _TEXT,
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": _TEXT,
        "code": {**_TEXT, "description": "Stable; programs look at this."},
        "cause": {**_TEXT, "description": "Why a rollout is masked."},
    },
}
_REFUSALS: Final = {
    "400": "The request cannot be read.",
    "401": "No token, or a wrong one.",
    "408": "The body did not arrive in time.",
    "413": "The body is larger than 1 MiB.",
    "415": "The body is compressed.",
    "500": "A fault of the gateway.",
    "503": "The infrastructure failed, or there is no room: nothing may be graded or trained on.",
}
_PARAMETERS: Final = {
    "token": "The tenant's token, for trainers that cannot send headers.",
    "run": "The training job that the rollout belongs to.",
    "environment": "The environment; item.environment where the path has none.",
    "tool": "The tool; the body's name where the path has none.",
}


def with_agent_rft(openapi: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Return what describes the framework's routes and these."""
    described: dict[str, Any] = {}

    def describe() -> dict[str, Any]:
        if not described:
            described.update(openapi())
            described["paths"] |= _paths()
            schemas = described.setdefault("components", {}).setdefault("schemas", {})
            schemas |= {
                "ToolCall": _TOOL_CALL,
                "ToolOutput": _OUTPUT,
                "GradeRequest": _GRADE,
                "Score": _SCORE,
                "Problem": PROBLEM,
            }
        return described

    return describe


def _paths() -> dict[str, Any]:
    # Every mixture is served; these are the ones that people use.
    prefix = "/agent-rft"
    bases = {
        "": (),
        "/environments/{environment}": ("environment",),
        "/runs/{run}/environments/{environment}": ("run", "environment"),
        "/tokens/{token}/runs/{run}/environments/{environment}": ("token", "run", "environment"),
    }
    paths: dict[str, Any] = {}
    for base, names in bases.items():
        call = _operation("Call a tool", names, "ToolCall", "ToolOutput")
        paths[f"{prefix}{base}/tools"] = {"post": call}
        named = _operation("Call the tool that the path names", (*names, "tool"), "ToolCall", "ToolOutput")
        paths[f"{prefix}{base}/tools/{{tool}}"] = {"post": named}
        grade = _operation("Grade a rollout", names, "GradeRequest", "Score")
        paths[f"{prefix}{base}/grade"] = {"post": grade}
    return paths


def _operation(summary: str, names: tuple[str, ...], takes: str, gives: str) -> dict[str, Any]:
    answers = {
        status: {"description": text, "content": {"application/problem+json": {"schema": _ref("Problem")}}}
        for status, text in _REFUSALS.items()
    }
    text = "The score." if gives == "Score" else "What the model is shown."
    answers = {"200": {"description": text, "content": {"application/json": {"schema": _ref(gives)}}}, **answers}
    return {
        "tags": ["agent-rft"],
        "summary": summary,
        "security": [] if "token" in names else [{"Token": []}],
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _TEXT, "description": _PARAMETERS[name]}
            for name in names
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": _ref(takes)}}},
        "responses": answers,
    }


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}
