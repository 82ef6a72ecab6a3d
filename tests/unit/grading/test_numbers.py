"""A number counts by what it is, not by how it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.grading import Refused
from rollcage.grading.builtins.numbers import quantity
from support.graders import context, score

if TYPE_CHECKING:
    from decimal import Decimal

GRADER = {"kind": "number", "expected": "item.answer", "close": {"within": 0.05, "score": 0.5}}


@pytest.mark.parametrize(
    ("expected", "answer", "credit"),
    [
        ("7%", "0.07", 1.0),
        ("7%", "7 percent", 1.0),
        ("7%", "7", 1.0),
        ("0.07", "7%", 1.0),
        ("0.07", "7", 0.0),
        ("$32", "32 dollars", 1.0),
        ("32", "US$ 32", 1.0),
        ("1200000", "1.2 million", 1.0),
        ("1.2 million", "$1,200,000", 1.0),
        ("-5", "(5)", 1.0),
        ("-5", "5", 0.0),
        ("-5", "\u22125", 1.0),
        ("32.4", "32.41", 0.5),
        ("32.4", "32", 0.5),
        ("32.4", "33.9", 0.5),
        ("32.4", "35", 0.0),
        ("32.4", "The ratio rose.\nAnswer: 32.4", 1.0),
        ("32.4", "From 30 to 35 it is \\boxed{32.4}", 1.0),
        ("32.4", "In Q3 2019 it was 31, now\n32.4", 1.0),
        ("32.4", "31, 32.4, 33", 0.0),
        ("32.4", "Q3", 0.0),
        ("32.4", "", 0.0),
        ("32.4", "no idea", 0.0),
        ("0", "0.0", 1.0),
        ("0", "0.01", 0.0),
        ("1e3", "1000", 1.0),
        (12, "12", 1.0),
        (0.5, "50%", 1.0),
        ("32", "9" * 5000, 0.0),
        ("32", "1e999", 0.0),
        ("32", "٣٢", 1.0),
    ],
)
def test_credit_by_number(expected: object, answer: str, credit: float) -> None:
    assert score(GRADER, context(answer, {"answer": expected})).value == credit


def test_percent_can_be_told_apart() -> None:
    assert score({**GRADER, "percent": False}, context("7%", {"answer": "0.07"})).value == 0.0


def test_a_field_of_a_json_answer_may_be_the_number() -> None:
    grader = {**GRADER, "found": "answer.json.result.value"}
    assert score(grader, context({"result": {"value": 32}}, {"answer": 32})).value == 1.0
    assert score(grader, context({"result": 32}, {"answer": 32})).value == 0.0


def test_an_item_without_a_number_is_a_refusal() -> None:
    with pytest.raises(Refused, match="no number"):
        score(GRADER, context("7", {"answer": "seven"}))


@given(
    st.decimals(min_value=-(10**9), max_value=10**9, places=3), st.sampled_from(["{:f}", "${:,.3f}", "{:.3f} dollars"])
)
def test_a_number_is_itself_however_it_is_written(value: Decimal, form: str) -> None:
    read = quantity(form.format(value))
    assert read is not None
    assert read.value == value


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    quantity(text)


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_naming_two_numbers_never_earns_more_than_naming_none(one: int, other: int) -> None:
    assert score(GRADER, context(f"{one} or {other}", {"answer": one})).value == 0.0
