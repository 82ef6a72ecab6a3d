"""Sets: order and repetition make no difference, naming everything does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.core.graders import Measure, Members
from rollcage.grading.builtins.sets import compared, members
from support.graders import context, score

NAMES = st.frozensets(st.sampled_from("abcdefgh"))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("a.py\nb/c.py", {"a.py", "b/c.py"}),
        ("- ./a.py\n- `b/../b/c.py`", {"a.py", "b/c.py"}),
        ("1. a.py\n2) a.py", {"a.py"}),
        ("/workspace/a.py, 'b.py'", {"a.py", "b.py"}),
        (["a.py", "a.py", 3, None], {"a.py", "3"}),
        ("", set()),
        (None, set()),
        ({"files": "a"}, set()),
    ],
)
def test_members_are_found_however_they_are_listed(answer: Any, found: set[str]) -> None:
    assert members(answer, Members.PATHS) == found


def test_facts_differ_in_neither_case_nor_space() -> None:
    assert members("The  Moon is far.\nthe moon is FAR", Members.FACTS) == {"the moon is far"}


@pytest.mark.parametrize(
    ("measure", "value"), [("f1", 2 / 3), ("precision", 0.5), ("recall", 1.0)], ids=["F1", "precision", "recall"]
)
def test_a_measure_is_chosen_and_all_are_told(measure: str, value: float) -> None:
    grader = {"kind": "set", "expected": "item.files", "found": "answer.json.files", "measure": measure}
    given = score(grader, context({"files": ["a", "b"]}, {"files": ["a"]}))
    assert given.value == value
    assert set(given.parts) == {"f1", "precision", "recall"}


@given(NAMES, NAMES)
def test_f1_is_symmetric_and_between_its_parts(one: frozenset[str], other: frozenset[str]) -> None:
    forth, back = compared(one, other), compared(other, one)
    assert forth[Measure.F1] == back[Measure.F1]
    assert (forth[Measure.F1] == 1.0) == (one == other)
    low, high = sorted((forth[Measure.PRECISION], forth[Measure.RECALL]))
    assert low - 1e-9 <= forth[Measure.F1] <= high + 1e-9 or not one or not other


@given(NAMES, NAMES, st.sampled_from("ijkl"))
def test_naming_one_more_wrong_thing_never_helps(expected: frozenset[str], found: frozenset[str], wrong: str) -> None:
    before, after = compared(expected, found), compared(expected, found | {wrong})
    assert after[Measure.F1] < before[Measure.F1] or before[Measure.F1] == 0.0
