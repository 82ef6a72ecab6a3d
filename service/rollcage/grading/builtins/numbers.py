"""
Compare a number with the expected one: not brittle about how it is written, strict about which one is meant.

7 % is 0.07, $32 is 32 dollars, (5) is -5, 1.2 million is 1,200,000. A text with
several numbers and no word on which is the answer names none of them, or a
model would learn to list them all.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Any, Final

from rollcage.core.graders import NumberGrader
from rollcage.grading.builtins.selecting import select
from rollcage.grading.protocol import Context, Refused, Score

# An answer is short; what is longer is searched at its end, where answers stand.
_LOOKED_AT: Final = 4000
_NUMBER: Final = re.compile(
    r"(?P<open>\(\s*)?(?P<sign>[-+\u2212])?\s*(?:[$€£¥]|US\$)?\s*(?P<sign2>[-\u2212])?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,40}(?:\.\d{1,40})?|\.\d{1,40})(?:[eE](?P<power>[-+]?\d{1,3}))?"
    r"(?P<close>\s*\))?\s*"
    r"(?P<unit>%|(?:percent|per cent|thousand|million|billion|trillion|mm|bn|[kKmMbB])\b)?",
    re.IGNORECASE,
)
_SCALES: Final = {
    "thousand": 3, "k": 3, "million": 6, "mm": 6, "m": 6, "billion": 9, "bn": 9, "b": 9, "trillion": 12,
}  # fmt: skip
_MARKED: Final = re.compile(r"(?:\\boxed\{([^{}]*)\}|(?:final answer|answer)\s*(?:is|:|=)\s*(.+))", re.IGNORECASE)
# What binary fractions add.
_NOISE: Final = 1e-9
_PERCENT: Final = frozenset({"%", "percent", "per cent"})


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it was written."""

    value: Decimal
    percent: bool = False

    def meanings(self, *, percent: bool) -> tuple[Decimal, ...]:
        """Return what it may stand for: with a percent sign a hundredth as well."""
        return (self.value, self.value / 100) if self.percent and percent else (self.value,)


def number_score(grader: NumberGrader, context: Context) -> Score:
    """Return 1 for right, the partial credit for close, else 0."""
    expected = quantity(select(grader.expected, context))
    if expected is None:
        raise Refused(f"{grader.expected} is no number")
    found = quantity(select(grader.found, context))
    if found is None:
        return Score(0.0, notes=("the answer names no one number",))
    pairs = list(product(expected.meanings(percent=grader.percent), found.meanings(percent=grader.percent)))
    if any(_near(e, f, max(grader.within, _NOISE)) for e, f in pairs):
        return Score(1.0)
    if grader.close and any(_near(e, f, grader.close.within) for e, f in pairs):
        return Score(grader.close.score, notes=("close",))
    return Score(0.0, notes=("another number",))


def quantity(given: Any) -> Quantity | None:
    """Read a number, or a text that names exactly one."""
    if isinstance(given, bool) or given is None:
        return None
    if isinstance(given, (int, float)):
        given = repr(given)
    if not isinstance(given, str):
        return None
    for text in _candidates(given[-_LOOKED_AT:].strip()):
        found = [read for match in _NUMBER.finditer(text) if (read := _read(match))]
        if len(found) == 1:
            return found[0]
    return None


def _candidates(text: str) -> list[str]:
    """Return where to look: a marked answer alone if there is one, else the whole text, else its last line."""
    marked = [one for pair in _MARKED.findall(text) for one in pair if one]
    if marked:
        return [marked[-1]]
    lines = text.splitlines()
    return [text, lines[-1]] if len(lines) > 1 else [text]


def _read(match: re.Match[str]) -> Quantity | None:
    before, after = match.string[: match.start("digits")], match.string[match.end("digits") :]
    if before[-1:].isalpha() or (after[:1].isalpha() and not match["unit"] and not match["power"]):
        # Part of a word, such as Q3 or 10K.
        return None
    digits = match["digits"].replace(",", "")
    unit = (match["unit"] or "").lower()
    power = int(match["power"] or 0) + _SCALES.get(unit, 0)
    value = Decimal(digits).scaleb(power)
    negative = bool(match["sign"] or match["sign2"]) and (match["sign"] or match["sign2"]) != "+"
    if negative or (match["open"] and match["close"]):
        value = -value
    return Quantity(value, unit in _PERCENT)


def _near(expected: Decimal, found: Decimal, within: float) -> bool:
    return abs(expected - found) <= abs(expected) * Decimal(repr(within))
