"""
What a burst did, as whoever drove it saw it.

Values only; drawing them belongs to ``burst``. Times are seconds since the
burst began.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BurstRollout:
    """One rollout of a burst, from its first request to its end."""

    rollout: str
    asked_at: float
    # When its first call was answered: it had a sandbox then. None if that never happened.
    answered_at: float | None
    ended_at: float | None
    # How long each answered call took, in the order of the calls.
    call_seconds: tuple[float, ...] = ()
    # The verdict: trainable, masked, abandoned; empty if none was seen.
    word: str = ""
    cause: str = ""
    # The code of what refused it, if something did.
    refusal: str = ""
    sandbox: str = ""
    score: float | None = None


@dataclass(frozen=True, slots=True)
class PoolLevel:
    """How the pool and the queue stood at one moment."""

    at: float
    warm: int
    claimed: int
    queued: int = 0
    starting: int = 0


@dataclass(frozen=True, slots=True)
class Burst:
    """A whole burst."""

    title: str
    url: str
    environment: str
    run: str
    began_at: datetime
    seconds: float
    rollouts: tuple[BurstRollout, ...]
    # By time; empty where nobody could look.
    pool: tuple[PoolLevel, ...] = ()
    # Sentences for the reader, such as that nothing was isolated.
    notes: tuple[str, ...] = ()
