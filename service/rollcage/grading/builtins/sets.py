"""
Compare sets: which files must be edited, which facts matter.

Order and repetition make no difference. Naming everything costs precision.
"""

import posixpath
import re
from typing import Any, Final

from rollcage.core.graders import Measure, Members, SetGrader
from rollcage.grading.builtins.selecting import select, texts
from rollcage.grading.protocol import Context, Score

# Whoever names more than that names everything.
_MOST: Final = 10_000
_BULLET: Final = re.compile(r"^\s*(?:[-*•]|\d{1,4}[.)])\s+")


def set_score(grader: SetGrader, context: Context) -> Score:
    """Return F1, precision or recall, with all three as parts."""
    expected = members(select(grader.expected, context), grader.members)
    found = members(select(grader.found, context), grader.members)
    measures = compared(expected, found)
    return Score(measures[grader.measure], {str(name): value for name, value in measures.items()})


def compared(expected: frozenset[str], found: frozenset[str]) -> dict[Measure, float]:
    """Return all three measures; two empty sets are the same set."""
    both = len(expected & found)
    if not expected and not found:
        return dict.fromkeys(Measure, 1.0)
    return {
        Measure.F1: 2 * both / (len(expected) + len(found)),
        Measure.PRECISION: both / len(found) if found else 0.0,
        Measure.RECALL: both / len(expected) if expected else 1.0,
    }


def members(value: Any, kind: Members) -> frozenset[str]:
    """Return the members of a list, or of a text with one member per line or between commas."""
    listed = _listed(value) if isinstance(value, str) else texts(value)
    spell = _path if kind is Members.PATHS else _fact
    return frozenset(filter(None, (spell(one) for one in listed[:_MOST])))


def _listed(text: str) -> tuple[str, ...]:
    lines = (_BULLET.sub("", line) for line in text.splitlines())
    return tuple(piece for line in lines for piece in line.split(","))


def _path(text: str) -> str:
    bare = text.strip().strip("`'\"").strip()
    if not bare:
        return ""
    return posixpath.normpath(bare).removeprefix("/workspace/")


def _fact(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .`'\"")
