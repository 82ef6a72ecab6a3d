"""
Scores by dataset item: where they differ, the model has something to learn.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from rollcage.reports.run_data import RunRollout


@dataclass(frozen=True, slots=True)
class Item:
    """What the rollouts of one dataset item scored."""

    item: str
    count: int
    low: float
    mean: float
    high: float

    @property
    def flat(self) -> bool:
        """Whether all of several rollouts scored the same: there is no better and no worse to learn from."""
        return self.count > 1 and self.low == self.high


def items_of(rollouts: Iterable[RunRollout]) -> list[Item]:
    """Return the graded items, worst first."""
    scores: dict[str, list[float]] = defaultdict(list)
    for rollout in rollouts:
        # A masked rollout may have been graded before it was masked; its score is not the model's.
        if rollout.item is not None and rollout.score is not None and rollout.word != "masked":
            scores[rollout.item].append(rollout.score)
    items = [Item(item, len(all_), min(all_), sum(all_) / len(all_), max(all_)) for item, all_ in scores.items()]
    return sorted(items, key=lambda one: (one.mean, one.item))
