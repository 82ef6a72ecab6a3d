"""The custom resource's schema and the model must not drift apart: both are walked, field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from rollcage.core.environment_spec import BuiltinTool, EnvironmentSpec

CRD = Path(__file__).parents[3] / "manifests" / "crd" / "environments.rollcage.dev.yaml"
BOUNDS = (
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("pattern", "enum", "description", "required"),
)

Facts = dict[str, dict[str, Any]]


def resource_facts() -> Facts:
    version = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]
    facts: Facts = {}
    walk_resource(version["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec", facts)
    return facts


def walk_resource(schema: dict[str, Any], path: str, facts: Facts) -> None:
    found = {bound: schema[bound] for bound in BOUNDS if bound in schema}
    if schema.get("x-kubernetes-int-or-string"):
        del found["minimum"]  # For numbers; texts have the pattern.
        schema = {**schema, "type": "string"}
    found["type"] = schema["type"]
    if "default" in schema:
        found["default"] = schema["default"]
    facts[path] = found
    for name, field in schema.get("properties", {}).items():
        walk_resource(field, f"{path}.{name}", facts)
    for inner in ("items", "additionalProperties"):
        if inner in schema:
            walk_resource(schema[inner], f"{path}[]", facts)


def model_facts() -> Facts:
    schema = EnvironmentSpec.model_json_schema(by_alias=True)
    facts: Facts = {}
    walk_model(schema, "spec", facts, schema.pop("$defs"))
    return facts


def walk_model(schema: dict[str, Any], path: str, facts: Facts, parts: dict[str, Any]) -> None:
    # An optional field is one that may be missing; it has no default in the resource.
    optional = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if optional:
        schema = {**{k: v for k, v in schema.items() if k not in {"anyOf", "default"}}, **optional[0]}
    if "$ref" in schema:
        schema = {**parts[schema["$ref"].rpartition("/")[2]], **schema}
    found = {bound: schema[bound] for bound in BOUNDS if bound in schema}
    found["type"] = schema["type"]
    if "default" in schema:
        # Parts fill themselves in; an empty list or mapping is the same as none.
        found["default"] = {} if "properties" in schema else schema["default"]
        if not schema["default"] and schema["type"] in {"array", "object"}:
            del found["default"]
    facts[path] = found
    for name, field in schema.get("properties", {}).items():
        walk_model(field, f"{path}.{name}", facts, parts)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            walk_model(schema[inner], f"{path}[]", facts, parts)


def test_both_have_the_same_fields() -> None:
    assert sorted(resource_facts()) == sorted(model_facts())


def test_each_field_has_the_same_type_default_bounds_and_description() -> None:
    resource, model = resource_facts(), model_facts()

    assert {path: facts for path, facts in resource.items() if facts != model[path]} == {
        path: model[path] for path, facts in resource.items() if facts != model[path]
    }


def test_the_resource_knows_all_built_in_tools_by_name() -> None:
    text = " ".join(CRD.read_text().split())

    assert f"!(self in [{', '.join(repr(tool.value) for tool in BuiltinTool)}])" in text
