"""
Decide how fast pools may change: how many starts at once, how many deletions beside them, and when.

Pure arithmetic over what was measured; the controller measures and acts.
Why a bound, and why this one: ``docs/decisions/pace.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

# Begun with few: only then is seen what a start takes that nothing disturbs. Later, so many do no harm
# to the smallest node, and keep it busy when all that already run have made every start slower.
FIRST_STARTS: Final = 4
FEWEST_STARTS: Final = 8
MOST_STARTS: Final = 256

# Up to here a start that takes longer than an undisturbed one is put down to chance; beyond, to crowding.
TOLERANCE: Final = 3.0

# Beside a stock nobody waits for the next start, but for the last: one may start for so many that stand ready.
# Many at once spare the node work that it does for each change of any of its sandboxes; too many cost it more.
READY_FOR_A_START: Final = 5

# One slow start must not throttle, and one fast one not unleash.
_SMOOTHING: Final = 0.2

# What an undisturbed start takes is the fastest one seen. It is forgotten so slowly that filling the largest
# pool does not make crowding look normal, and quickly enough that a cluster may get slower over the weeks.
_FORGETTING: Final = 1.0005

# Deletions beside starts, or starts beside deletions: enough to make progress, few enough not to be felt.
_SHARE_BESIDE: Final = 4

# Deletions while starts wait for the room: every sandbox that is still there makes each start on its node slower.
_DELETIONS_FOR_ROOM: Final = 4

# A burst is over when no claim has come for this long; one that never ends must not starve the pool.
BURST_QUIET: Final = timedelta(seconds=1)
BURST_LONGEST: Final = timedelta(seconds=10)

_FIRST_PAUSE: Final = timedelta(seconds=1)
_LONGEST_PAUSE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Pace:
    """How many sandboxes may be starting at once, learned from how long starts take."""

    bound: float = float(FIRST_STARTS)
    fastest: float = math.inf
    """How long a start takes that nothing disturbs, in seconds."""
    smoothed: float = 0.0
    """How long starts take these days, in seconds."""
    ease: float = 1.0
    """Which part is used of what a stock allows: less after the source was too busy."""

    @property
    def starts(self) -> int:
        """How many sandboxes may be starting at once."""
        return int(self.bound)

    def starts_beside(self, stock: int) -> int:
        """How many sandboxes may be starting at once while so many stand ready and nobody is disturbed."""
        return max(self.starts, min(MOST_STARTS, int(self.ease * stock / READY_FOR_A_START)))

    @property
    def usual(self) -> timedelta | None:
        """How long a start takes these days, if any has succeeded."""
        return timedelta(seconds=self.smoothed) if self.smoothed else None

    def started(self, took: timedelta, *, beside: int) -> Pace:
        """
        Learn from a start that succeeded while *beside* others were starting.

        Where the starts crowd each other they get longer without getting more:
        the bound shrinks until one takes about TOLERANCE times as long as an
        undisturbed one, and doubles from round to round while it takes less
        and the bound is used.
        """
        seconds = max(took.total_seconds(), 0.001)
        smoothed = self.smoothed + _SMOOTHING * (seconds - self.smoothed) if self.smoothed else seconds
        fastest = min(seconds, self.fastest * _FORGETTING)
        uncrowded = min(1.0, max(0.5, TOLERANCE * fastest / smoothed))
        if uncrowded == 1.0:
            bound = self.bound + (1.0 if beside > self.bound / 2 else 0.0)
        else:
            wanted = self.bound * uncrowded + math.sqrt(self.bound)
            bound = self.bound + _SMOOTHING * (wanted - self.bound)
        ease = self.ease + _SMOOTHING * (1.0 - self.ease)
        return Pace(min(MOST_STARTS, max(FEWEST_STARTS, bound)), fastest, smoothed, ease)

    def throttled(self) -> Pace:
        """Learn that the source itself is too busy."""
        return replace(self, bound=max(FEWEST_STARTS, self.bound / 2), ease=self.ease / 2)


def deletions_allowed(pace: Pace, *, starting: bool, need_room: bool) -> int:
    """Return how many sandboxes may be going away at once: few beside starts, many if these wait for the room."""
    if need_room:
        return pace.starts * _DELETIONS_FOR_ROOM
    return _beside(pace) if starting else pace.starts


def starts_allowed(pace: Pace, *, stock: int, need_room: bool, leaving: int) -> int:
    """
    Return how many sandboxes of one pool may be starting at once, *leaving* of it being on their way out.

    A start takes longer the more there are on its node. One that takes the
    place of each that leaves would always find it full: where many have to
    leave, they leave first. Some starts go on, whatever becomes of those.
    """
    crowded = need_room and leaving > pace.starts * _DELETIONS_FOR_ROOM
    return _beside(pace) if crowded else pace.starts_beside(stock)


def _beside(pace: Pace) -> int:
    return max(1, pace.starts // _SHARE_BESIDE)


@dataclass(frozen=True, slots=True)
class Burst:
    """A burst of claims, which is let through before its pool is filled up again. Times are monotonic."""

    began: float = -math.inf
    last: float = -math.inf

    def claimed(self, now: float) -> Burst:
        """Learn of claims."""
        return Burst(self.began if not self.is_over(now) else now, now)

    def is_over(self, now: float) -> bool:
        """Tell whether no claim has come for a while."""
        return now - self.last > BURST_QUIET.total_seconds()

    def leaves_room(self, now: float, *, waiting: int) -> bool:
        """Tell whether starts would do no harm, or are what the burst waits for."""
        return waiting > 0 or self.is_over(now) or now - self.began > BURST_LONGEST.total_seconds()


def pause_after(failures: int) -> timedelta:
    """Return how long to leave an environment alone whose starts have failed so often in a row."""
    if failures == 0:
        return timedelta()
    return min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << min(failures - 1, 10)))


class Bucket:
    """Requests that may be made now: some at once, then so many a second. Times are monotonic."""

    def __init__(self, *, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._filled = -math.inf

    def available(self, now: float) -> int:
        """Return how many may be made."""
        if now > self._filled:
            gained = self._rate * (now - self._filled) if math.isfinite(self._filled) else 0.0
            self._left = min(self._burst, self._left + gained)
            self._filled = now
        return max(0, int(self._left))

    def take(self, requests: int) -> None:
        """Count what is made; a little more than there is makes the next ones wait longer."""
        self._left -= requests

    def close(self, now: float, *, seconds: float) -> None:
        """Allow nothing for a while: the other side has asked for a rest."""
        self._left = 0.0
        self._filled = max(self._filled, now + seconds)


def shared(room: int, wants: dict[str, int], *, first: tuple[str, ...] = ()) -> dict[str, int]:
    """
    Share starts between environments, one each in turn; those in *first* are served before the others.

    Nobody waits behind a large pool that is being filled.
    """
    given = dict.fromkeys(wants, 0)
    for group in (first, tuple(name for name in wants if name not in first)):
        hungry = [name for name in group if wants.get(name, 0) > 0]
        while room > 0 and hungry:
            for name in hungry[:room]:
                given[name] += 1
                room -= 1
            hungry = [name for name in hungry if given[name] < wants[name]]
    return given
