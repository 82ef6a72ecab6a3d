"""
Decide whether a run's step is safe to train on.

Masked rollouts are left out of training, and they are not left out at random:
long and heavy ones are hit first. A few do no harm; many bend what the model
learns. Only figures in, advice out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# Below this many ended rollouts a share means nothing.
_ENOUGH: Final = 20

# A step that lost more than every fourth rollout is no sample of what the model does.
SKIP_SHARE: Final = 0.25

# More than every twentieth is more than bad luck: somebody should look before more is lost.
HOLD_SHARE: Final = 0.05


class Advice(StrEnum):
    """What the trainer had better do."""

    PROCEED = "proceed"
    HOLD = "hold"  # wait: the infrastructure is in trouble
    SKIP = "skip"  # do not train on this


class Reason(StrEnum):
    """Why not to proceed."""

    MANY_MASKED = "many_masked"
    TOO_MANY_MASKED = "too_many_masked"
    STORE_RECOVERING = "store_recovering"


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run's health is judged by."""

    rollouts: int
    active: int
    ended: int
    calls: int
    masked: int
    trainable: int
    abandoned: int
    causes: Mapping[str, int]
    store_live: bool = True

    @property
    def judged(self) -> int:
        """How many have a verdict that says something about the infrastructure."""
        return self.masked + self.trainable

    @property
    def masked_share(self) -> float:
        """Which part of those was masked."""
        return self.masked / self.judged if self.judged else 0.0


@dataclass(frozen=True, slots=True)
class Health:
    """The advice, and the figures behind it."""

    advice: Advice
    reasons: tuple[Reason, ...]
    figures: Figures


def judge_run(figures: Figures) -> Health:
    """Say whether the step is safe to train on."""
    enough = figures.judged >= _ENOUGH
    reasons: list[Reason] = []
    if not figures.store_live:
        reasons.append(Reason.STORE_RECOVERING)
    if enough and figures.masked_share > SKIP_SHARE:
        reasons.append(Reason.TOO_MANY_MASKED)
    elif enough and figures.masked_share > HOLD_SHARE:
        reasons.append(Reason.MANY_MASKED)
    if Reason.TOO_MANY_MASKED in reasons:
        return Health(Advice.SKIP, tuple(reasons), figures)
    return Health(Advice.HOLD if reasons else Advice.PROCEED, tuple(reasons), figures)
