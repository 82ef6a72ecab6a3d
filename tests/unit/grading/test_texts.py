"""Texts and shapes: what is forgiven is said, and nothing else is."""

from __future__ import annotations

from typing import Any

import pytest

from rollcage.grading import Refused
from support.graders import context, files, score


@pytest.mark.parametrize(
    ("answer", "fields", "value"),
    [
        ("  the MOON ", {}, 1.0),
        ("the moon.", {}, 0.0),
        ("the moon.", {"ignore": ["case", "space", "punctuation"]}, 1.0),
        ("Moon", {"ignore": ["case", "articles"]}, 1.0),
        ("the möon", {"ignore": ["accents"]}, 1.0),
        ("The moon", {"ignore": []}, 0.0),
        ("it is the moon indeed", {"contains": True}, 1.0),
        ("it is the moonlight", {"contains": True}, 0.0),
        ("luna", {}, 1.0),
        ("", {}, 0.0),
    ],
)
def test_a_text_is_one_of_the_expected(answer: str, fields: dict[str, Any], value: float) -> None:
    grader = {"kind": "text", "expected": "item.names", **fields}
    assert score(grader, context(answer, {"names": ["the moon", "luna"]})).value == value


def test_a_file_may_be_the_answer() -> None:
    grader = {"kind": "text", "expected": "item.word", "found": "file:note.txt"}
    assert score(grader, context(item={"word": "x"}, artifacts=files(note__txt="x\n"))).value == 1.0
    assert score(grader, context(item={"word": "x"})).value == 0.0


@pytest.mark.parametrize("item", [{}, {"names": []}, {"names": " "}])
def test_an_item_without_an_expected_text_is_a_refusal(item: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        score({"kind": "text", "expected": "item.names"}, context("x", item))


@pytest.mark.parametrize(
    ("answer", "value"), [({"n": 1}, 1.0), ({"n": "1"}, 0.0), ({}, 0.0), ([], 0.0), ("no JSON", 0.0)]
)
def test_a_shape_is_matched_or_not(answer: Any, value: float) -> None:
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
    given = score({"kind": "json_schema", "schema": schema}, context(answer))
    assert given.value == value
    assert bool(given.notes) is (value == 0.0)
