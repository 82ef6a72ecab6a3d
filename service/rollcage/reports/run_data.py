"""
What is known of a run when its report is written.

Values only; fetching them belongs to ``gathering``, drawing them to ``run``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RunRollout:
    """One rollout, as far as the plots need it."""

    rollout: str
    begun_at: datetime | None
    calls: int
    repeated: int
    # The verdict: trainable, masked, abandoned; empty while it runs.
    word: str
    cause: str
    score: float | None
    item: str | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a rollout whose calls were read."""

    tool: str
    outcome: str
    seconds: float | None
    # Characters that the model saw.
    shown: int


@dataclass(frozen=True, slots=True)
class RunData:
    """A run at one moment."""

    run: str
    url: str
    now: datetime
    advice: str
    reasons: tuple[str, ...]
    causes: Mapping[str, int]
    # By begin, oldest first.
    rollouts: tuple[RunRollout, ...]
    calls: tuple[ToolCall, ...]
    # From how many rollouts the calls were read.
    sampled: int
    # How many rollouts make a training step, in the order in which they began; 0 if nobody said.
    step: int = 0
