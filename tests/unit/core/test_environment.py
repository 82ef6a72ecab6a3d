from __future__ import annotations

from typing import Any

import pytest

from rollcage.core.environment import (
    MOST_CONFIG_BYTES,
    Environment,
    EnvironmentInvalid,
    template_fingerprint,
    toolserver_config,
)
from rollcage.core.environment_types import amount
from support.environments import MISTAKES, environment, resource


@pytest.mark.parametrize(("mistake", "where"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_refused_and_named(mistake: dict[str, Any], where: str) -> None:
    with pytest.raises(EnvironmentInvalid) as refusal:
        environment(**mistake)

    assert where in str(refusal.value)


@pytest.mark.parametrize("name", ["", "A", "a_b", "-a", "a" * 64, "a\n"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(EnvironmentInvalid, match=r"metadata\.name"):
        environment(name)


def test_a_field_that_nobody_reads_is_refused() -> None:
    with pytest.raises(EnvironmentInvalid, match=r"spec\.imagee: is no field"):
        environment(imagee="x")


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(EnvironmentInvalid) as refusal:
        environment(image=None, egress="all")

    assert [problem.field for problem in refusal.value.problems] == ["spec.image", "spec.egress"]


def test_another_kind_of_resource_is_refused() -> None:
    with pytest.raises(EnvironmentInvalid, match="kind: is 'Pod', not Environment"):
        Environment.from_resource({**resource(), "kind": "Pod"})


def test_what_kubernetes_keeps_beside_the_spec_is_left_alone() -> None:
    kept = resource()
    kept["metadata"] |= {"uid": "u", "generation": 3}
    kept["status"] = {"ready": 2}

    assert Environment.from_resource(kept) == environment()


def test_a_null_means_the_default_as_on_the_api_server() -> None:
    assert environment(pool={"warm": None}).spec.pool.warm == 0


def test_a_recipe_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        environment().spec.pool.warm = 3


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("250m", 0.25), ("1.5", 1.5), ("1Ki", 1024), ("1.5Gi", 1.5 * 2**30), ("2M", 2e6)]
)
def test_quantities_have_kubernetes_meaning(text: str, value: float) -> None:
    assert float(amount(text)) == value


def test_a_configuration_too_long_for_a_variable_is_refused() -> None:
    commands = ["x" * 16_000] * (MOST_CONFIG_BYTES // 16_000 + 1)

    with pytest.raises(EnvironmentInvalid, match=f"{MOST_CONFIG_BYTES} may"):
        environment(setup={"commands": commands})


class TestTheFingerprint:
    @pytest.mark.parametrize(
        "change",
        [
            {"pool": {"warm": 7, "maxPods": 9}},
            {"description": "for people"},
            {"grading": {"grader": {"kind": "function", "function": "graders:score"}}},
            {"budgets": {"lifetimeSeconds": 3600, "wallSeconds": 1800, "calls": 5, "idleSeconds": 60}},
        ],
        ids=["the size of the pool", "the description", "the grader", "what a rollout may do"],
    )
    def test_stays_when_no_pod_would_differ(self, change: dict[str, Any]) -> None:
        assert template_fingerprint(environment(**change)) == template_fingerprint(environment())

    @pytest.mark.parametrize(
        "change",
        [
            {"image": "other:1"},
            {"env": {"A": "b"}},
            {"setup": {"commands": ["true"]}},
            {"limits": {"outputBytes": 1000}},
            {"tools": {"order": "serial"}},
            {"budgets": {"lifetimeSeconds": 3601, "wallSeconds": 1800}},
            {"pod": {"runtimeClassName": "gvisor"}},
        ],
        ids=lambda change: next(iter(change)),
    )
    def test_changes_when_a_pod_would_differ(self, change: dict[str, Any]) -> None:
        assert template_fingerprint(environment(**change)) != template_fingerprint(environment())

    def test_tells_environments_apart(self) -> None:
        assert template_fingerprint(environment("a")) != template_fingerprint(environment("b"))

    def test_does_not_depend_on_how_the_text_was_ordered(self) -> None:
        one, other = environment(env={"A": "1", "B": "2"}), environment(env={"B": "2", "A": "1"})

        assert template_fingerprint(one) == template_fingerprint(other)


class TestTheToolserversConfiguration:
    def test_says_what_the_environment_says(self) -> None:
        custom = {"name": "lint", "command": ["/opt/lint"], "description": "Lints.", "timeoutSeconds": 30}
        config = toolserver_config(
            environment(  # noqa: S604 - a field of that name
                workdir="/testbed",
                shell=["/bin/bash", "-c"],
                env={"LANG": "C.UTF-8"},
                setup={"commands": ["pip install -e ."], "timeoutSeconds": 90},
                tools={"builtin": ["shell"], "custom": [custom], "order": "serial"},
            )
        )

        assert config == {
            "workdir": "/testbed",
            "shell": ["/bin/bash", "-c"],
            "env": {"LANG": "C.UTF-8"},
            "tools": ["shell"],
            "custom_tools": [
                {
                    "name": "lint",
                    "description": "Lints.",
                    "command": ["/opt/lint"],
                    "parameters": {"type": "object"},
                    "timeout_ms": 30_000,
                }
            ],
            "setup": ["pip install -e ."],
            "setup_timeout_ms": 90_000,
            "order": "serial",
            "limits": {
                "default_timeout_ms": 60_000,
                "max_timeout_ms": 540_000,
                "output_bytes": 65_536,
                "concurrent_calls": 16,
                "waiting_calls": 64,
            },
        }

    def test_leaves_out_what_the_toolserver_finds_by_itself(self) -> None:
        assert not {"shell", "tools"} & toolserver_config(environment()).keys()

    def test_begins_in_the_workspace_unless_told_otherwise(self) -> None:
        assert toolserver_config(environment(workspace={"path": "/w", "size": "1Mi"}))["workdir"] == "/w"

    def test_lowers_the_default_timeout_to_a_small_maximum(self) -> None:
        config = toolserver_config(environment(limits={"maxTimeoutSeconds": 5}))

        assert config["limits"]["default_timeout_ms"] == 5000
