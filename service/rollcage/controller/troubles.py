"""
What keeps an environment's sandboxes from starting, and until when it is left alone.

Remembered by the leader, shown in the environment's status. A start that
succeeds ends the trouble.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from rollcage.core.pace import pause_after
from rollcage.sandboxes.source import HoldCause, QuotaExceeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollcage.core.errors import RollcageError


class Reason(StrEnum):
    """Why sandboxes do not start, as the status of an environment has it."""

    IMAGE_PULL_FAILED = "ImagePullFailed"
    UNSCHEDULABLE = "Unschedulable"
    START_FAILED = "StartFailed"
    SETUP_FAILED = "SetupFailed"
    QUOTA_EXCEEDED = "QuotaExceeded"
    REJECTED = "Rejected"


OF_HOLD = {
    HoldCause.IMAGE_PULL: Reason.IMAGE_PULL_FAILED,
    HoldCause.UNSCHEDULABLE: Reason.UNSCHEDULABLE,
    HoldCause.START_ERROR: Reason.START_FAILED,
}


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong last, how often in a row, and until when nothing is tried. Times are monotonic."""

    reason: Reason
    message: str
    failures: int
    until: float


class Troubles:
    """The troubles of all environments; *told* hears of each new one."""

    def __init__(self, told: Callable[[str, Reason], None] = lambda _environment, _reason: None) -> None:
        self._told = told
        self._of: dict[str, Trouble] = {}

    def get(self, environment: str) -> Trouble | None:
        """Return the trouble that an environment is in."""
        return self._of.get(environment)

    def failed(self, environment: str, reason: Reason, message: str, now: float) -> Trouble:
        """Remember a failure; those that come while the environment is left alone anyway are the same one."""
        before = self._of.get(environment)
        if before and now < before.until:
            return before
        failures = before.failures + 1 if before else 1
        trouble = Trouble(reason, message, failures, now + pause_after(failures).total_seconds())
        self._of[environment] = trouble
        self._told(environment, reason)
        return trouble

    def refused(self, environment: str, error: RollcageError, now: float) -> Trouble:
        """Remember that the source will not make a sandbox."""
        reason = Reason.QUOTA_EXCEEDED if isinstance(error, QuotaExceeded) else Reason.REJECTED
        return self.failed(environment, reason, str(error), now)

    def over(self, environment: str) -> None:
        """Remember that a start succeeded."""
        self._of.pop(environment, None)

    def may_start(self, environment: str, now: float) -> bool:
        """Tell whether starts may be tried now."""
        trouble = self._of.get(environment)
        return trouble is None or now >= trouble.until

    def probing(self, environment: str) -> bool:
        """Tell whether one start is to be tried, to see whether the trouble is over."""
        return environment in self._of
