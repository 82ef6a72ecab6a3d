"""What is put around measures: sums, bounds, penalties; and trees of them in YAML."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rollcage.core.environment import Environment, EnvironmentInvalid
from rollcage.core.graders import ClampGrader, PenaltiesGrader
from rollcage.grading import Score
from rollcage.grading.builtins.combining import clamped
from rollcage.grading.builtins.penalties import penalised, repeated
from support.environments import environment
from support.graders import context, score, step

HALF = {"kind": "text", "expected": "item.word"}
FLOATS = st.floats(-100, 100)


def test_a_sum_weighs_its_parts_and_names_them() -> None:
    tree = yaml.safe_load("""
        kind: sum
        parts:
          - {name: word, weight: 0.25, grader: {kind: text, expected: item.word}}
          - name: files
            weight: 0.75
            grader: {kind: set, expected: item.files, found: answer.json}
    """)
    found = score(tree, context(["a"], {"word": "no", "files": ["a"]}))
    assert found.value == 0.75
    assert found.parts == {"word": 0.0, "files": 1.0, "files.f1": 1.0, "files.precision": 1.0, "files.recall": 1.0}


@given(FLOATS, FLOATS, FLOATS)
def test_a_clamped_score_is_within_its_bounds(value: float, one: float, other: float) -> None:
    lowest, highest = sorted((one, other))
    grader = ClampGrader.model_validate({"kind": "clamp", "grader": HALF, "lowest": lowest, "highest": highest})
    assert lowest <= clamped(Score(value), grader).value <= highest


def test_bounds_make_no_score_of_what_is_none() -> None:
    grader = ClampGrader.model_validate({"kind": "clamp", "grader": HALF, "lowest": 0, "highest": 1})
    assert math.isnan(clamped(Score(math.nan), grader).value)


@pytest.mark.parametrize(
    ("rule", "taken"),
    [
        ({"count": "calls", "above": 2, "each": 0.1}, 0.2),
        ({"count": "calls", "above": 0, "each": 1, "most": 0.3}, 0.3),
        ({"count": "calls", "above": 10, "each": 1}, 0.0),
        ({"count": "repeated_calls", "each": 0.1}, 0.1),
        ({"count": "failed_calls", "each": 0.1}, 0.1),
        ({"count": "malformed_calls", "each": 0.1}, 0.1),
        ({"count": "wall_seconds", "above": 100, "each": 0.001}, 0.081),
        ({"count": "output_bytes", "above": 2, "each": 0.1}, 0.4),
    ],
)
def test_each_penalty_counts_what_it_says(rule: dict[str, Any], taken: float) -> None:
    steps = (
        step(arguments={"command": "ls"}, number=1, output="äö"),
        step(arguments={"command": "ls"}, number=2, outcome="failed", output="ab"),
        step(arguments={"command": "cat"}, number=3),
        step("search", {"command": "ls"}, number=4, outcome="malformed"),
    )
    tree = {"kind": "penalties", "grader": HALF, "penalties": [rule]}
    found = score(tree, context("x", {"word": "x"}, trajectory=steps))
    assert found.value == pytest.approx(1 - taken)
    assert found.parts[f"penalty_{rule['count']}"] == pytest.approx(-taken)


@given(st.floats(-1, 1), st.integers(0, 50), st.floats(0, 1))
def test_penalties_never_help_and_never_go_through_the_floor(value: float, calls: int, each: float) -> None:
    rule = {"count": "calls", "each": each}
    grader = PenaltiesGrader.model_validate({"kind": "penalties", "grader": HALF, "penalties": [rule], "floor": -0.5})
    steps = tuple(step(number=number) for number in range(1, calls + 1))
    found = penalised(Score(value), grader, context(trajectory=steps)).value
    assert min(value, -0.5) <= found <= value


def test_a_repeated_call_is_one_with_the_same_arguments_in_any_order() -> None:
    steps = (step(arguments={"a": 1, "b": 2}), step(arguments={"b": 2, "a": 1}), step(arguments={"a": 2, "b": 1}))
    assert repeated(context(trajectory=steps)) == 1


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ({"kind": "magic"}, "magic"),
        ({}, "kind"),
        ({"kind": "set"}, "expected"),
        ({"kind": "set", "expected": "items.x"}, "expected"),
        ({"kind": "sum", "parts": []}, "parts"),
        ({"kind": "sum", "parts": [{"name": "a", "weight": 1, "grader": {"kind": "magic"}}]}, "magic"),
        ({"kind": "number", "expected": "item.x", "wihtin": 1}, "wihtin"),
        ({"kind": "judge", "url": "ftp://x"}, "url"),
        ({"kind": "judge", "url": "http://x", "headers": {"authorization": "HOME"}}, "headers"),
        ({"kind": "function", "function": "graders.score"}, "function"),
        ({"kind": "clamp", "grader": HALF, "lowest": float("nan")}, "lowest"),
    ],
)
def test_a_mistake_in_a_grader_is_found_when_the_environment_is_read(tree: dict[str, Any], told: str) -> None:
    with pytest.raises(EnvironmentInvalid, match=told) as refusal:
        environment(grading={"grader": tree})
    assert refusal.value.problems[0].field == "spec.grading.grader"


def test_a_grader_reads_back_as_it_was_written() -> None:
    grading = {"grader": {"kind": "clamp", "grader": HALF, "highest": 1}}
    made = environment(grading=grading)
    assert made.spec.grading is not None
    dumped = made.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert Environment.model_validate({"name": "small", "spec": dumped}) == made
