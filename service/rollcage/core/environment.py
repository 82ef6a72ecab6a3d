"""
The environment: a named recipe for sandboxes, and what follows from it.

Read from the custom resource or from the same YAML in a file. How a recipe
becomes a pod or a process tree is the business of ``sandboxes``.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import ValidationError, field_validator

from rollcage.core.environment_spec import EnvironmentSpec
from rollcage.core.environment_types import Part
from rollcage.core.errors import RollcageError
from rollcage.core.ids import BadId, environment_name

API_VERSION: Final = "rollcage.dev/v1alpha1"
KIND: Final = "Environment"

# The configuration travels in one environment variable, and Linux takes 128 KiB in one.
MOST_CONFIG_BYTES: Final = 100 * 1024

_FINGERPRINT_DIGITS: Final = 16
_PLAINLY: Final = {"extra_forbidden": "is no field", "missing": "is missing"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in an environment."""

    field: str
    """Where, as in ``spec.tools.custom[0].name``; empty for the document as a whole."""
    message: str
    place: str = ""
    """Which line of which file, where that is known."""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.place, self.field, self.message) if part)


class EnvironmentInvalid(RollcageError):
    """An environment was refused whole; *problems* names every mistake that was found."""

    code = "environment_invalid"

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


class Environment(Part):
    """A named recipe for sandboxes."""

    name: str
    spec: EnvironmentSpec

    @field_validator("name")
    @classmethod
    def _name_is_allowed(cls, name: str) -> str:
        try:
            return environment_name(name)
        except BadId as refusal:
            raise ValueError(str(refusal)) from refusal

    @field_validator("spec")
    @classmethod
    def _config_fits(cls, spec: EnvironmentSpec) -> EnvironmentSpec:
        size = len(json.dumps(_config(spec)).encode())
        if size > MOST_CONFIG_BYTES:
            raise ValueError(f"commands, variables and tools take {size} bytes, {MOST_CONFIG_BYTES} may")
        return spec

    @classmethod
    def from_resource(cls, resource: Mapping[str, Any]) -> Self:
        """Read a custom resource; what Kubernetes keeps in it beside name and spec is left alone."""
        problems = tuple(
            Problem(field, f"is {resource.get(field)!r}, not {expected}")
            for field, expected in (("apiVersion", API_VERSION), ("kind", KIND))
            if resource.get(field) != expected
        )
        if problems:
            raise EnvironmentInvalid(problems)
        metadata = resource.get("metadata")
        given = {
            "name": metadata.get("name") if isinstance(metadata, Mapping) else None,
            "spec": resource.get("spec"),
        }
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise EnvironmentInvalid(tuple(_problems(error))) from error


def template_fingerprint(environment: Environment, *, beside: Mapping[str, Any] | None = None) -> str:
    """
    Return a short hash of everything that shapes a sandbox; *beside* is what its source adds to the recipe.

    Sandboxes with another one are out of date. How many there are, and what a
    rollout may do in one, does not count: resizing a pool replaces nobody.
    """
    shape = environment.spec.model_dump(
        mode="json", by_alias=True, exclude={"description", "pool", "budgets", "grading"}
    )
    shape["lifetimeSeconds"] = environment.spec.budgets.lifetime_seconds
    text = json.dumps([environment.name, shape, dict(beside or {})], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_FINGERPRINT_DIGITS]


def toolserver_config(environment: Environment) -> dict[str, Any]:
    """Return what the toolserver is told at its start, as the content of ``ROLLCAGE_CONFIG``."""
    return _config(environment.spec)


def _config(spec: EnvironmentSpec) -> dict[str, Any]:
    limits = spec.limits
    config: dict[str, Any] = {
        "workdir": spec.workdir or spec.workspace.path,
        "env": dict(spec.env),
        "custom_tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "command": list(tool.command),
                "parameters": dict(tool.parameters),
                "timeout_ms": (tool.timeout_seconds or _default_timeout(spec)) * 1000,
            }
            for tool in spec.tools.custom
        ],
        "setup": list(spec.setup.commands),
        "setup_timeout_ms": spec.setup.timeout_seconds * 1000,
        "order": spec.tools.order.value,
        "limits": {
            "default_timeout_ms": _default_timeout(spec) * 1000,
            "max_timeout_ms": limits.max_timeout_seconds * 1000,
            "output_bytes": limits.output_bytes,
            "concurrent_calls": limits.concurrent_calls,
            "waiting_calls": limits.waiting_calls,
        },
    }
    if spec.shell is not None:
        config["shell"] = list(spec.shell)
    if spec.tools.builtin is not None:
        config["tools"] = [tool.value for tool in spec.tools.builtin]
    return config


def _default_timeout(spec: EnvironmentSpec) -> int:
    return min(spec.limits.default_timeout_seconds, spec.limits.max_timeout_seconds)


def _problems(error: ValidationError) -> list[Problem]:
    return [Problem(_field(one["loc"]), _PLAINLY.get(one["type"]) or _plain(one["msg"])) for one in error.errors()]


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ")


def _field(location: tuple[int | str, ...]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).lstrip(".")
    return f"metadata.{path}" if path == "name" else path
