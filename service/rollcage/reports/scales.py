"""
From figures to places on a plot: scales, where their marks stand, and how figures are spelled.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_THOUSAND: Final = 1000
_MILLION: Final = 1_000_000
_TEN: Final = 10
_HUNDRED: Final = 100

# Steps at which people read a clock, from a minute upwards.
_CLOCK: Final = tuple(
    unit * step
    for unit, steps in ((_MINUTE, (1, 2, 5, 10, 15, 30)), (_HOUR, (1, 2, 3, 6, 12)), (_DAY, (1, 2, 5, 10, 30)))
    for step in steps
)

# How many times the smallest the largest must be for a scale of powers.
_WIDE: Final = 50
# And how many times at most; what is smaller stands at the edge.
_WIDEST: Final = 1e6

Spelling = Callable[[float], str]

# What lies closer together is one value: divided further it would become zero.
_SAME: Final = 1e-300


@dataclass(frozen=True, slots=True)
class Scale:
    """Where values from *low* to *high* lie between two places."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        bent = math.log10 if self.log else float
        low, high = bent(self.low), bent(self.high)
        share = (bent(max(value, self.low) if self.log else value) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self, about: int = 5, *, clock: bool = False) -> list[float]:
        """Return round values for marks."""
        if self.log:
            return _log_ticks(self.low, self.high)
        return _linear_ticks(self.low, self.high, about, clock=clock)


def over(values: Sequence[float], start: float, end: float, *, zero: bool = True) -> Scale:
    """Return a plain scale that holds all values, from zero unless told otherwise."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low < _SAME:
        high = low + 1
    return Scale(low, high, start, end)


def wide(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a scale of powers where the values ask for one, else a plain one."""
    positive = [value for value in values if value > 0]
    if not positive or max(positive) < _WIDE * min(positive):
        return over(values, start, end)
    return Scale(max(min(positive), max(positive) / _WIDEST), max(positive), start, end, log=True)


def edges(scale: Scale, count: int) -> list[float]:
    """Return the bounds of so many bins, equally wide on the plot."""
    if not scale.log:
        return [scale.low + (scale.high - scale.low) * index / count for index in range(count + 1)]
    low, high = math.log10(scale.low), math.log10(scale.high)
    return [10 ** (low + (high - low) * index / count) for index in range(count + 1)]


def bins(values: Sequence[float], bounds: Sequence[float]) -> list[int]:
    """Count the values between each two bounds; the last bin holds its upper bound too."""
    counts = [0] * (len(bounds) - 1)
    for value in values:
        index = next((place for place, (_, upper) in enumerate(pairwise(bounds)) if value < upper), len(counts) - 1)
        counts[index] += 1
    return counts


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the others lies; of no values, not a number."""
    ordered = sorted(values)
    if not ordered:
        return math.nan
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def plain(value: float) -> str:
    """Spell a count or a score."""
    if abs(value) >= _MILLION:
        return f"{value / _MILLION:.3g} M"
    if abs(value) >= _TEN * _THOUSAND:
        return f"{value / _THOUSAND:.3g} k"
    return f"{value:,.0f}" if value == round(value) else f"{value:.3g}"


def seconds(value: float) -> str:
    """Spell a duration."""
    if value == 0:
        return "0"
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if value >= size * (1 if size != _MINUTE else 2):
            return f"{value / size:.3g} {unit}"
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * _THOUSAND:.3g} ms" if value * _THOUSAND >= 1 else f"{value * _MILLION:.0f} µs"


def percent(share: float) -> str:
    """Spell a share."""
    return f"{share:.0%}" if share in (0, 1) or share * _HUNDRED >= _TEN else f"{share:.1%}"


def _linear_ticks(low: float, high: float, about: int, *, clock: bool) -> list[float]:
    rough = (high - low) / about
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    if clock and step >= _MINUTE:
        step = next((candidate for candidate in _CLOCK if candidate >= rough), step)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    decades = math.log10(high / low)
    factors = (1, 2, 5) if decades <= 2 else (1, 3) if decades <= 3 else (1,)  # noqa: PLR2004 - as many as fit
    marks = (factor * 10.0**power for power in powers for factor in factors)
    return [mark for mark in marks if low * 0.999 <= mark <= high * 1.001]
