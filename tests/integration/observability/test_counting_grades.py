"""Every request for a score is counted by what it came to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.grading.conftest import grader
from support.counts import Counts, sees
from support.grading import function

if TYPE_CHECKING:
    from support.grading import Grader

__all__ = ["grader"]

NUMBER = {"kind": "number", "expected": "item.answer"}


@sees("grades", "grade_seconds", "scores")
async def test_a_score_is_counted_with_its_time_and_value(grader: Grader) -> None:
    grader.use(NUMBER)
    await grader.grade("7", {"answer": "7"})
    counts = Counts(grader.metrics)
    assert counts("grades_total", environment="small", outcome="scored") == 1
    assert counts("grade_seconds_count", environment="small") == 1
    assert counts("scores_sum", environment="small") == 1


@sees("grades")
@pytest.mark.parametrize(("name", "outcome"), [("raises", "grader_failed"), ("hangs", "timed_out")])
async def test_a_refusal_is_counted_by_why(grader: Grader, name: str, outcome: str) -> None:
    grader.use(function(name), timeoutSeconds=3)
    await grader.grade("7")
    counts = Counts(grader.metrics)
    assert counts("grades_total", environment="small", outcome=outcome) == 1
    assert counts("grades_total", environment="small", outcome="scored") == 0
