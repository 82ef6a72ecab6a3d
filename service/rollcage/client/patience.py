"""
Decide whether a request is sent again, and when.

A call carries its id, so sent again it is the same call and runs once; reading
changes nothing; ends and reservations are settled by their first. All else is
sent again only if the service surely did nothing with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rollcage.client.errors import Busy, ClientError, StillRunning, Unavailable, Unreachable

# A service that says "later" is believed, but nobody waits minutes on one word.
_LONGEST_WAIT: Final = 30.0


class Again(StrEnum):
    """When a request may be sent a second time."""

    ALWAYS = "always"  # doing it twice is doing it once
    UNSENT = "unsent"  # only if the service refused it at the door or never saw it


@dataclass(frozen=True, slots=True)
class Patience:
    """How often a request is tried, and how long is waited in between."""

    attempts: int = 6
    first_wait: float = 0.25
    longest_wait: float = 8.0

    def wait(self, again: Again, error: ClientError, *, attempt: int, chance: float) -> float | None:
        """
        Return after how many seconds to try again, or None if not at all.

        *attempt* counts from 1; *chance*, from 0 to 1, spreads those who failed
        together, so that they do not come back together.
        """
        if attempt >= self.attempts or not _may(again, error):
            return None
        told = getattr(error, "retry_after", None)
        if told is not None:
            return float(min(told, _LONGEST_WAIT)) * (1 + chance / 4)
        return float(min(self.longest_wait, self.first_wait * 2 ** (attempt - 1))) * (0.5 + chance / 2)


class Tries:
    """The tries of one request."""

    def __init__(self, patience: Patience, again: Again, chance: Callable[[], float]) -> None:
        self._patience, self._again, self._chance = patience, again, chance
        self._made = 0

    def wait(self, error: ClientError) -> float:
        """Return after how many seconds to try again; raises the error if not at all."""
        self._made += 1
        wait = self._patience.wait(self._again, error, attempt=self._made, chance=self._chance())
        if wait is None:
            raise error
        return wait

    def restart(self) -> None:
        """Count anew: there was progress."""
        self._made = 0


USUAL: Final = Patience()
ONCE: Final = Patience(attempts=1)


def _may(again: Again, error: ClientError) -> bool:
    if isinstance(error, Unreachable):
        return again is Again.ALWAYS or not error.sent
    if isinstance(error, Busy | StillRunning):
        return True
    return isinstance(error, Unavailable) and again is Again.ALWAYS
