"""
Take off for too many calls, repeated ones, too long, too much output.

Only what the model did is counted, never how long it waited for a sandbox.
"""

import json
from collections.abc import Callable, Mapping
from typing import Final

from rollcage.core.graders import Counted, PenaltiesGrader
from rollcage.grading.protocol import Context, Score


def penalised(score: Score, grader: PenaltiesGrader, context: Context) -> Score:
    """Return the score less its penalties, but not below the floor, unless it was there before."""
    parts = dict(score.parts)
    taken = 0.0
    for penalty in grader.penalties:
        over = max(0.0, _COUNTS[penalty.count](context) - penalty.above)
        cost = over * penalty.each
        if penalty.most is not None:
            cost = min(cost, penalty.most)
        name = f"penalty_{penalty.count}"
        parts[name] = parts.get(name, 0.0) - cost
        taken += cost
    floor = min(score.value, grader.floor)
    return Score(max(score.value - taken, floor), parts, score.notes)


def repeated(context: Context) -> int:
    """Count the calls that say word for word what an earlier one said."""
    said = [(step.tool, json.dumps(step.arguments, sort_keys=True)) for step in context.trajectory]
    return len(said) - len(set(said))


def _of_outcome(outcome: str) -> Callable[[Context], float]:
    return lambda context: sum(step.outcome == outcome for step in context.trajectory)


_COUNTS: Final[Mapping[Counted, Callable[[Context], float]]] = {
    Counted.CALLS: lambda context: len(context.trajectory),
    Counted.REPEATED_CALLS: repeated,
    Counted.FAILED_CALLS: _of_outcome("failed"),
    Counted.MALFORMED_CALLS: _of_outcome("malformed"),
    Counted.WALL_SECONDS: lambda context: context.wall_seconds,
    Counted.OUTPUT_BYTES: lambda context: sum(len((step.output or "").encode()) for step in context.trajectory),
}
