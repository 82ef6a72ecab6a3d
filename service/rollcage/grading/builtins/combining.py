"""
Put scores together: weighted sums and bounds.
"""

from collections.abc import Sequence

from rollcage.core.graders import ClampGrader, Weighted
from rollcage.grading.protocol import Score


def weighted_sum(scores: Sequence[tuple[Weighted, Score]]) -> Score:
    """Add scores up by their weights; each part is named, and its own parts below it."""
    parts: dict[str, float] = {}
    notes: list[str] = []
    for part, score in scores:
        parts[part.name] = score.value
        parts |= {f"{part.name}.{name}": value for name, value in score.parts.items()}
        notes += [f"{part.name}: {note}" for note in score.notes]
    return Score(sum(part.weight * score.value for part, score in scores), parts, tuple(notes))


def clamped(score: Score, grader: ClampGrader) -> Score:
    """Hold a score within bounds. NaN stays NaN: it is no score, and must not become one."""
    value = score.value
    if grader.highest is not None and value > grader.highest:
        value = grader.highest
    if grader.lowest is not None and value < grader.lowest:
        value = grader.lowest
    return Score(value, score.parts, score.notes)
