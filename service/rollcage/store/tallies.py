"""
What a rollout's calls add up to, read off their marks alone.

The marks tell when a call began and ended, as what it counts, and how much the
model saw; the calls themselves, which may be large, are not read.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Tally:
    """The calls of one rollout in figures."""

    calls: int
    # Calls that asked for the same, tool and arguments, as an earlier one of the rollout.
    repeated: int
    outcomes: MappingProxyType[str, int]
    # Of the calls that have a result, as the gateway's callers waited for it; None without any.
    median_ms: float | None
    slowest_ms: int | None
    # Characters of output that the model saw, all calls together.
    shown: int


def tally(marks: Iterable[bytes]) -> Tally:
    """Add up the marks of one rollout's calls."""
    hashes = list[bytes]()
    outcomes = Counter[str]()
    lasted = list[int]()
    shown = 0
    for mark in marks:
        _, digest, _, begun_at, *ending = mark.split(b" ")
        hashes.append(digest)
        if ending:
            finished_at, outcome, size = ending
            outcomes[outcome.decode()] += 1
            lasted.append(int(finished_at) - int(begun_at))
            shown += int(size)
    return Tally(
        calls=len(hashes),
        repeated=len(hashes) - len(set(hashes)),
        outcomes=MappingProxyType(dict(outcomes)),
        median_ms=median(lasted) if lasted else None,
        slowest_ms=max(lasted, default=None),
        shown=shown,
    )
