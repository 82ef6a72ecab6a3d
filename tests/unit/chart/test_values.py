"""
What the chart may be told: nothing that nobody reads, at no level, and no environment that the cluster would refuse.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from lab.manifests import CHART, template
from lab.talk import LabError
from support.environments import MISTAKES, spec

Json = dict[str, Any]

# Rules over several fields, and texts that no pattern can judge: the API server refuses these when they arrive.
ONLY_THE_API_SERVER = {
    "a pool above the bound",
    "a workspace that climbs",
    "a workspace in the kernel's place",
    "a workspace over the toolserver",
    "more memory asked for than allowed",
    "a workspace larger than the disk",
    "a life shorter than a rollout",
    "a custom tool named like a built-in one",
    "a custom tool slower than any call may be",
    "a variable with = in its name",
    "a variable of ours",
    "a volume without content",
    "a volume with two contents",
    "a volume named like one of ours",
    "a volume over the workspace",
    "a label of ours",
    "a range of scores upside down",
}
# What is somebody else's to say: other charts', a tool's own schema, a grader's options.
OPEN = {"global", "environment.tools.custom[].parameters", "environment.grading.grader"}


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("replicas=1", "replicas"),
        ("gateway.replica=3", "replica"),
        ("gateway.ingress.hosts={a}", "hosts"),
        ("redis.persistence.class=fast", "class"),
        ("signing.key=k2", "key"),
        ("gateway.replicas=0", "replicas"),
        ("sandboxes.namespace=Not_A_Name", "namespace"),
        ("environments.e.tools=none", "image"),
        ("gateway.tolerations[0].kee=x", "kee"),
        ("networkPolicy.gatewayFrom[0].ipBlock.cdir=10.0.0.0/8", "cdir"),
        ("networkPolicy.gatewayTo[0].ports[0].prot=TCP", "prot"),
        ("redis.external.ca.name=x", "name"),
        ("tenants.generated=team a", "generated"),
        ("monitoring.rules.runbooks=docs", "runbooks"),
        ("signing.signs=k2", "k2"),
        ("sandboxes.namespace=rollcage", "a namespace of their own"),
    ],
)
def test_values_that_nobody_reads_or_that_make_no_sense_are_refused(setting: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        template(f"--set={setting}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert _known(schema) == _told(values)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_an_environment_is_refused_before_the_cluster_is_asked(mistake: str) -> None:
    fields, _ = MISTAKES[mistake]
    if mistake in ONLY_THE_API_SERVER:
        assert template(_told_as(spec(**fields)))
    else:
        with pytest.raises(LabError, match="at '/environments/e"):
            template(_told_as(spec(**fields)))


def test_the_documented_environment_is_accepted() -> None:
    example = (CHART.parents[1] / "docs" / "environments.md").read_text().split("```yaml\n")[1].split("```")[0]

    assert "swe-python" in template(_told_as(yaml.safe_load(example)["spec"]))


def test_a_null_in_an_environment_is_the_same_as_nothing() -> None:
    assert template(_told_as(spec(description=None, egress=None, pool=None, resources={"limits": {"cpu": None}})))


def test_the_schema_is_closed_at_every_level() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert set(_open_places(schema)) == OPEN


def _known(schema: Json, path: str = "") -> set[str]:
    found = set()
    for name, part in schema.get("properties", {}).items():
        if name != "global" and "additionalProperties" in part and part["additionalProperties"] is False:
            found |= _known(part, f"{path}{name}.")
        elif name != "global":
            found.add(f"{path}{name}")
    return found


def _told(values: Json, path: str = "") -> set[str]:
    found = set()
    for name, value in values.items():
        whole = f"{path}{name}"
        if isinstance(value, dict) and value and not whole.endswith(("resources", "labels")):
            found |= _told(value, f"{whole}.")
        else:
            found.add(whole)
    return found


def _told_as(environment: Json) -> str:
    return f"--set-json=environments.e={json.dumps(environment)}"


def _open_places(schema: Json, path: str = "") -> list[str]:
    found = []
    if schema.get("type") in ("object", ["object", "null"]) and "additionalProperties" not in schema:
        found.append(path)
    for key in ("properties", "definitions"):
        for name, part in schema.get(key, {}).items():
            found += _open_places(part, f"{path}.{name}" if path else name)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            found += _open_places(schema[key], f"{path}[]")
    return found
