"""What a word means has its colour in every panel, and no word was forgotten."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from monitoring import charts
from rollcage.core.verdict_words import Cause, Word
from rollcage.telemetry.labels import (
    ArchiveLabel,
    GradeLabel,
    OutcomeLabel,
    PoolLabel,
    RefusalLabel,
    StartLabel,
    StatusLabel,
)
from rollcage.telemetry.zeroes import word_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHOWN: dict[str, tuple[Mapping[str, str], Iterable[str]]] = {
    "outcomes": (charts.OUTCOMES, OutcomeLabel),
    "verdicts": (charts.VERDICTS, Word),
    "grades": (charts.GRADES, GradeLabel),
    "states": (charts.STATES, set(PoolLabel) - {PoolLabel.MOST}),
    "statuses": (charts.STATUSES, StatusLabel),
    "results": (charts.RESULTS, ArchiveLabel),
    "causes": (charts.CAUSES, [*RefusalLabel, *(cause for cause in Cause if word_of(cause) is Word.MASKED)]),
    "reasons": (charts.REASONS, StartLabel),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_every_word_that_a_label_may_have_has_its_colour(kind: str) -> None:
    paint, words = SHOWN[kind]
    assert [word for word in words if not any(re.fullmatch(ending, word) for ending in paint)] == []
