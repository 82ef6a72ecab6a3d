"""
What the chart's schema says of environments: the same as the resource definition, and nothing beside it.

Helm itself would not tell: the API server drops a field that it does not know,
and only whoever asks for strictness hears of it. Rules that compare fields
stay with the API server, which refuses what breaks them.
"""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

Json = dict[str, Any]

# Defaults are filled in by the API server.
_TAKEN: Final = (
    *("description", "type", "anyOf", "enum", "required", "pattern", "minimum", "maximum"),
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)


def with_environments(schema: str, definition: str) -> str:
    """Return the chart's schema with environments as the resource definition has them."""
    made = json.loads(schema)
    (version,) = yaml.safe_load(definition)["spec"]["versions"]
    made["definitions"]["environment"] = _closed(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _closed(field: Json) -> Json:
    found: Json = {key: field[key] for key in _TAKEN if key in field}
    if "items" in field:
        found["items"] = _closed(field["items"])
    if "properties" in field:
        needed = field.get("required", ())
        parts = {name: _closed(part) for name, part in field["properties"].items()}
        found["properties"] = {name: part if name in needed else _or_null(part) for name, part in parts.items()}
    if "additionalProperties" in field:
        found["additionalProperties"] = _closed(field["additionalProperties"])
    elif "properties" in field and not field.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found


def _or_null(field: Json) -> Json:
    """Let a field be null, which is the same as leaving it out."""
    changed = dict(field)
    if "enum" in changed:
        changed["enum"] = [*changed["enum"], None]
    if "anyOf" in changed:
        changed["anyOf"] = [*changed["anyOf"], {"type": "null"}]
    else:
        changed["type"] = [changed["type"], "null"]
    return changed
