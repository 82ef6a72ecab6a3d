"""
Say what came of a burst, for people.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import Final

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from rollcage.cli.bursts.driving import Driven
from rollcage.cli.bursts.figures import Figures
from rollcage.cli.bursts.trainer import Played
from rollcage.core.verdict_words import Word

# Of an output that is not as it should be.
_SHOWN: Final = 300


def summary(driven: Driven) -> Group:
    """Return a table by kind of rollout, and the figures in words."""
    table = Table("what happened", "rollouts", "trained", "masked", "because", "score", box=box.SIMPLE, pad_edge=False)
    table.columns[0].no_wrap = True
    for title, played in _kinds(driven.played):
        trained, masked = (sum(one.word == word for one in played) for word in (Word.TRAINABLE, Word.MASKED))
        reasons = sorted(set(map(because, played)) - {""})
        scores = sorted({f"{one.score:g}" for one in played if one.score is not None})
        counts = (str(number or "") for number in (len(played), trained, masked))
        table.add_row(title, *counts, ", ".join(reasons), ", ".join(scores))
    style = "green" if driven.figures.all_is_well else "bold red"
    lines = [*told(driven.figures), *_odd(driven.played)]
    return Group(table, *(Text(line, style=style) for line in lines))


def told(figures: Figures) -> list[str]:
    """Return the figures in words; of what nobody broke, spoiled or graded there is nothing to say."""
    speed = f"first answer after {figures.first_answer_p50:.2f} s (median), {figures.first_answer_p95:.2f} s (p95)"
    broken = f"broken from outside: {figures.masked_expected}; masked: {figures.masked}"
    lines = [
        f"{figures.rollouts} rollouts in {figures.distinct_sandboxes} sandboxes, {figures.calls} calls answered",
        f"{figures.seconds:.1f} s in all; {speed}",
    ]
    if figures.masked_expected or figures.false_zeros:
        lines.append(f"{broken}; false zeros: {figures.false_zeros}")
    if figures.spoiled:
        lines.append(f"spoiled by the model: {figures.spoiled}; trained on: {figures.spoiled_trained}")
    lines.append(f"masked without a reason: {figures.false_masks}")
    if figures.graded or figures.wrong_scores:
        lines.append(f"graded: {figures.graded}; wrong scores: {figures.wrong_scores}")
    return [*lines, f"wrong outputs: {figures.wrong_outputs}; rollouts refused: {figures.unanswered}"]


def because(one: Played) -> str:
    """Return why a rollout is not trained on: its verdict's cause, or what it was refused with."""
    if one.word == Word.MASKED:
        return one.cause
    return "" if one.answers[-1].good else one.answers[-1].code


def _odd(played: Iterable[Played]) -> list[str]:
    """Return what should not have been answered."""
    return [f"{one.script.title}: {output[:_SHOWN]!r}" for one in played for output in one.wrong]


def _kinds(played: Iterable[Played]) -> list[tuple[str, list[Played]]]:
    def kind(one: Played) -> tuple[bool, bool, str]:
        return one.script.strike is not None, one.script.spoils, one.script.title

    return [(key[-1], list(group)) for key, group in groupby(sorted(played, key=kind), kind)]
