"""One spelling for the same arguments."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.rollouts.arguments import MAX_BYTES, canonical, fingerprint
from rollcage.rollouts.errors import TooLarge

NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
LETTERS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | LETTERS,
    lambda inner: st.lists(inner) | st.dictionaries(LETTERS, inner),
    max_leaves=10,
)


@given(VALUES)
def test_text_and_value_are_spelled_the_same_and_mean_the_same(value: Any) -> None:
    if isinstance(value, str):
        value = [value]  # A bare str is JSON text, not a value.

    spelled = canonical(value)

    assert json.loads(spelled) == value
    assert canonical(json.dumps(value, indent=2)) == spelled


@given(st.text())
def test_every_text_has_a_spelling_that_is_json(text: str) -> None:
    json.loads(canonical(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param('{"a": 1, "b": 2}', '{"b":2,"a":1}', id="order and white space"),
        pytest.param('{"a": "\\u00e4"}', '{"a": "ä"}', id="escapes"),
        pytest.param('{"a": 18446744073709551616}', {"a": 2**64}, id="numbers beyond 64 bits"),
    ],
)
def test_the_same_arguments_are_known_again(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param('{"a": 1}', '{"a": "1"}', id="a number and its text"),
        pytest.param('{"a": 18446744073709551616}', '{"a": 18446744073709551617}', id="long numbers one apart"),
        pytest.param("{}", "", id="an empty object and nothing"),
    ],
)
def test_other_arguments_are_told_apart(one: Any, other: Any) -> None:
    assert canonical(one) != canonical(other)


def test_the_tool_is_part_of_the_call() -> None:
    assert fingerprint("list", b"{}") != fingerprint("search", b"{}")


def test_no_tool_and_arguments_read_like_others() -> None:
    assert fingerprint("a", b"b") != fingerprint("ab", b"")


def test_more_than_fits_is_refused() -> None:
    with pytest.raises(TooLarge) as refused:
        canonical({"content": "x" * MAX_BYTES})

    assert refused.value.limit == MAX_BYTES
