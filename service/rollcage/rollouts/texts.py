"""
What the model is told by the service itself.

In the toolserver's manner: one line in brackets. Each says what is true and
what can still be done; none of them says anything about the infrastructure.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from rollcage.core.verdict_words import Cause

_ENDED: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        Cause.OUT_OF_MEMORY: "it used more memory than it may",
        Cause.OUT_OF_STORAGE: "it used more disk space than it may",
        Cause.TOOLSERVER_CRIPPLED: "a command took away what it needs to run",
        Cause.KILLED_FROM_INSIDE: "a command killed it",
        Cause.BUDGET_SPENT: "its time is over",
    }
)

TOO_MANY_AT_ONCE: Final = "[not run: too many calls at once; wait for some of them to end]"
RECORD_FULL: Final = "[not run: no further calls can be made]"
NO_MORE_CALLS: Final = "[not run: this sandbox takes no more calls]"


def ended(cause: Cause) -> str:
    """Say that the sandbox is gone, by the model's own doing."""
    return f"[the sandbox has ended: {_ENDED[cause]}; nothing further can be run]"


def out_of_calls(budget: int) -> str:
    """Say that the rollout has made all its calls."""
    return f"[not run: all {budget} calls are used up]"


def out_of_time(seconds: int) -> str:
    """Say that the rollout's time is over."""
    return f"[not run: the time of {seconds} s is over]"


def still_running(seconds: float) -> str:
    """Say that a call did not end in time."""
    return f"[no result after {seconds:.0f} s]"


def not_taken(message: str) -> str:
    """Say that the arguments were not taken."""
    return f"[not run: {message}]"
