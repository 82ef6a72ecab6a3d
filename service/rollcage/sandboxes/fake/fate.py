"""
What happens to a sandbox that somebody asks the fake for.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from rollcage.core.endings import Ending
from rollcage.core.errors import RollcageError
from rollcage.sandboxes.source import (
    Hold,
    HoldCause,
    QuotaExceeded,
    SandboxRejected,
    SourceThrottled,
    SourceUnavailable,
)


class Answer(Enum):
    """What becomes of the request itself."""

    GIVEN = "given"
    LOST = "the sandbox is made, but nobody hears of it"
    UNHEARD = "the request gets lost, and nothing is made"
    THROTTLED = "refused for now"
    OVER_QUOTA = "refused until there is room"
    REJECTED = "refused for good"


@dataclass(frozen=True, slots=True)
class Fate:
    """One sandbox's story. The one without arguments: it runs after a second, until it is deleted."""

    answer: Answer = Answer.GIVEN
    starts_after: float = 1.0
    """Seconds from the request, or from the end of its hold, until it runs."""
    hold: Hold | None = None
    """It does not start, for this reason."""
    held_for: float | None = None
    """Seconds until it may start after all; never, unless somebody releases it."""
    start_failure: Ending | None = None
    """It ends like this instead of running."""
    runs_for: float | None = None
    """Seconds until it ends by itself; never, unless somebody ends it."""
    ending: Ending | None = None
    """How it ends by itself."""
    stays_for: float = 0.0
    """Seconds from its deletion until it is gone."""


Fates = Callable[[str], Fate]


def always(fate: Fate) -> Fates:
    """Give every sandbox the same fate."""
    return lambda _: fate


def in_turn(*first: Fate, then: Fate | None = None) -> Fates:
    """Give each request its own fate, in this order, and all that follow the last one."""
    following: Iterator[Fate] = iter(first)
    last = then or Fate()
    return lambda _: next(following, last)


def image_missing(message: str = "no such image") -> Fate:
    """Tell of a sandbox whose image cannot be pulled."""
    return Fate(hold=Hold(HoldCause.IMAGE_PULL, message))


def unschedulable(message: str = "no node has room", *, held_for: float | None = None) -> Fate:
    """Tell of a sandbox that no node has room for, or not yet."""
    return Fate(hold=Hold(HoldCause.UNSCHEDULABLE, message), held_for=held_for)


def refusal(answer: Answer, name: str) -> RollcageError | None:
    """Return the error that a request is answered with, if it is."""
    match answer:
        case Answer.GIVEN:
            return None
        case Answer.LOST | Answer.UNHEARD:
            return SourceUnavailable(f"no answer about {name}")
        case Answer.THROTTLED:
            return SourceThrottled(f"too busy for {name}", retry_after=1.0)
        case Answer.OVER_QUOTA:
            return QuotaExceeded(f"no room for {name}")
        case Answer.REJECTED:
            return SandboxRejected(f"{name} will not be made")
