"""What an Agent RFT trainer is told, and that no fault of ours can train anybody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rollcage.gateway.app  # noqa: F401 - so that every error is known that can reach a trainer
from rollcage.core.errors import CallConflict, RollcageError, RolloutEnded
from rollcage.core.verdict_words import Cause, Word
from rollcage.gateway.dialects.agent_rft.answering import LARGEST_ANSWER, output_body, refusal_of, text_of
from rollcage.gateway.errors import EnvironmentUnknown, NotAuthorized, TenantBusy
from rollcage.gateway.problems import STATUSES
from rollcage.rollouts.errors import Masked, StillRunning, TooLarge

if TYPE_CHECKING:
    from collections.abc import Iterator

# The platform shows these to the model, or reads something else into them than we mean.
SENDERS_OWN = {
    "bad_id",
    "bad_request",
    "not_authorized",
    "no_such_route",
    "wrong_method",
    "body_too_large",
    "body_too_slow",
    "body_encoded",
}


def kinds(of: type[RollcageError] = RollcageError) -> Iterator[type[RollcageError]]:
    for kind in of.__subclasses__():
        yield kind
        yield from kinds(kind)


@pytest.mark.parametrize("kind", sorted(set(kinds()), key=str))
def test_no_error_reaches_the_model_as_a_status_unless_its_sender_made_it(kind: type[RollcageError]) -> None:
    error = kind.__new__(kind)
    assert (refusal_of(error).status < 500) == (kind.code in SENDERS_OWN)


def test_every_code_with_a_status_belongs_to_an_error() -> None:
    assert set(STATUSES) <= {kind.code for kind in kinds()}


def test_a_fault_that_nobody_foresaw_is_a_500_that_says_nothing() -> None:
    problem = refusal_of(RuntimeError("secret"))
    assert (problem.status, problem.code) == (500, "internal")
    assert "secret" not in problem.detail


def test_a_masked_rollout_is_a_503_with_its_cause_and_no_promise_to_come_back() -> None:
    problem = refusal_of(Masked(cause=Cause.NODE_LOST))
    assert (problem.status, problem.code, problem.retry_after) == (503, "masked", None)
    assert problem.body()["cause"] == "node_lost"


def test_a_call_that_still_runs_is_a_503_that_says_when_to_come_back() -> None:
    problem = refusal_of(StillRunning(call="c", retry_after=5.0))
    assert (problem.status, problem.headers()) == (503, [(b"retry-after", b"5")])


@pytest.mark.parametrize("error", [EnvironmentUnknown(environment="swe"), TenantBusy(quota=1)], ids=lambda e: e.code)
def test_what_would_be_a_4xx_elsewhere_is_a_503_here(error: RollcageError) -> None:
    assert refusal_of(error).status == 503


def test_a_wrong_token_is_a_401() -> None:
    assert refusal_of(NotAuthorized("no")).status == 401


@pytest.mark.parametrize(
    "error",
    [
        CallConflict(rollout="r", call="c"),
        RolloutEnded(verdict=Word.TRAINABLE, cause=Cause.FINISHED),
        TooLarge(size=2, limit=1),
    ],
    ids=lambda error: error.code,
)
def test_what_only_the_models_side_can_bring_about_is_a_text(error: RollcageError) -> None:
    assert "nothing was run" in (text_of(error) or "")


@pytest.mark.parametrize("word", [Word.MASKED, Word.ABANDONED, "from a later release"])
def test_a_model_never_hears_that_its_rollout_was_given_up(word: str) -> None:
    error = RolloutEnded(verdict=word, cause="")
    assert text_of(error) is None
    assert refusal_of(error).status == 503


def test_an_output_goes_out_as_it_is() -> None:
    body = output_body(call_id="c", own_id="i", output="a\n\x1b[0m \u00e4 \U0001f600")
    assert json.loads(body) == {
        "type": "function_call_output",
        "call_id": "c",
        "id": "i",
        "output": "a\n\x1b[0m \u00e4 \U0001f600",
    }


@pytest.mark.parametrize("letter", ["a", "\x00", "\n", "ä", "\U0001f600", '"', "\ud800"])
def test_an_answer_stays_below_a_megabyte_whatever_must_be_escaped(letter: str) -> None:
    output = letter * 700_000
    body = output_body(call_id="c" * 200, own_id="i" * 512, output=output)
    assert len(body) < LARGEST_ANSWER
    shown = json.loads(body)["output"]
    if len(shown) < len(output):
        # Nearly all of the room is used, and both ends are there.
        assert len(body) > LARGEST_ANSWER - 1000
        assert "characters left out" in shown
        assert shown[0] == shown[-1]


@settings(max_examples=30, deadline=None)
@given(st.text(min_size=1, max_size=50), st.integers(1, 60_000))
def test_a_cut_is_always_below_the_bound_and_always_the_same(text: str, times: int) -> None:
    output = text * times
    first, again = (output_body(call_id="c", own_id="i", output=output) for _ in range(2))
    assert first == again
    assert len(first) < LARGEST_ANSWER
