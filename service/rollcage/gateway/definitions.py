"""
The tools of an environment, as trainers want them defined.

The built-in ones stand in ``builtin_tools.json``, which the toolserver itself
has told (``tests/support/builtin_tools.py`` writes it, a test compares), so
that no sandbox has to run for this.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from rollcage.core.environment import Environment
from rollcage.core.environment_spec import BuiltinTool


@dataclass(frozen=True, slots=True)
class Definition:
    """One tool that a model can call; *parameters* is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def chat_completions(self) -> dict[str, Any]:
        """Return it as chat completions and datasets have it."""
        return {"type": "function", "function": {**self._fields(), "strict": is_strict(self.parameters)}}

    def responses(self) -> dict[str, Any]:
        """Return it as the Responses API has it: flat."""
        return {"type": "function", **self._fields(), "strict": is_strict(self.parameters)}

    def _fields(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}


def definitions(environment: Environment) -> tuple[Definition, ...]:
    """Return the tools that an environment offers, built-in ones first."""
    tools = environment.spec.tools
    offered = tuple(BuiltinTool) if tools.builtin is None else tools.builtin
    custom = (Definition(tool.name, tool.description, tool.parameters) for tool in tools.custom)
    return (*(builtin()[tool.value] for tool in offered), *custom)


def tool_names(environment: Environment) -> tuple[str, ...]:
    """Return the names alone."""
    tools = environment.spec.tools
    offered = tuple(BuiltinTool) if tools.builtin is None else tools.builtin
    return (*(tool.value for tool in offered), *(tool.name for tool in tools.custom))


def job_tools(environment: Environment, *, server_url: str, headers: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the list that an Agent RFT job is given: where each tool is called."""
    return [{"name": name, "server_url": server_url, "headers": dict(headers)} for name in tool_names(environment)]


def is_strict(schema: Any) -> bool:
    """
    Say whether a schema may be called strict.

    Strict trainers want every property required and no others, all the way
    down; a tool with optional arguments is none, and saying so would be refused.
    """
    if isinstance(schema, list | tuple):
        return all(map(is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(properties):
            return False
    return all(map(is_strict, schema.values()))


@cache
def builtin() -> Mapping[str, Definition]:
    """Return the built-in tools by name."""
    text = files(__package__).joinpath("builtin_tools.json").read_text(encoding="utf-8")
    return MappingProxyType({tool["name"]: Definition(**tool) for tool in json.loads(text)})
