"""
Evaluate a tree of graders: each kind of node by what it is, the composed ones by their children.
"""

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from rollcage.core import graders
from rollcage.grading.builtins import combining, guards, loading
from rollcage.grading.builtins.commands import command_score
from rollcage.grading.builtins.judge import judge_score
from rollcage.grading.builtins.numbers import number_score
from rollcage.grading.builtins.penalties import penalised
from rollcage.grading.builtins.schemas import schema_score
from rollcage.grading.builtins.sets import set_score
from rollcage.grading.builtins.texts import text_score
from rollcage.grading.protocol import Context, Score

_MEASURES: Final[Mapping[type[Any], Callable[[Any, Context], Score]]] = {
    graders.SetGrader: set_score,
    graders.NumberGrader: number_score,
    graders.TextGrader: text_score,
    graders.SchemaGrader: schema_score,
}
_ASKING: Final[Mapping[type[Any], Callable[[Any, Context], Awaitable[Score]]]] = {
    graders.CommandGrader: command_score,
    graders.JudgeGrader: judge_score,
}


async def evaluate(grader: graders.Grader, context: Context) -> Score:  # noqa: PLR0911 - one for each kind
    """Return what the grader says; raises Refused, and whatever a team's own function raises."""
    match grader:
        case graders.FunctionGrader():
            return await _own(grader, context)
        case graders.SumGrader():
            scores = [(part, await evaluate(part.grader, context)) for part in grader.parts]
            return combining.weighted_sum(scores)
        case graders.ClampGrader():
            return combining.clamped(await evaluate(grader.grader, context), grader)
        case graders.PenaltiesGrader():
            return penalised(await evaluate(grader.grader, context), grader, context)
        case graders.GuardsGrader():
            # Guards first: what is a hack needs no measuring, and no sandbox.
            hacks = await guards.found(grader.guards, context)
            if hacks:
                return Score(grader.score, {"hacks": float(len(hacks))}, tuple(hacks))
            return await evaluate(grader.grader, context)
        case graders.CommandGrader() | graders.JudgeGrader():
            return await _ASKING[type(grader)](grader, context)
        case _:
            return _MEASURES[type(grader)](grader, context)


async def _own(grader: graders.FunctionGrader, context: Context) -> Score:
    function = loading.load(grader.function)
    answer = function(dataclasses.replace(context, options=grader.options))
    if inspect.isawaitable(answer):
        answer = await answer
    # A bare number is a score; anything else is passed on as it is, and refused at the end.
    return Score(float(answer)) if isinstance(answer, (int, float)) else answer
