"""
One call on its way: what was asked, how much time is left, what was tried.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from rollcage.core.environment_types import amount
from rollcage.core.verdict_facts import Came, CpuTime
from rollcage.rollouts.actions import Action, Prepared
from rollcage.rollouts.patience import Patience
from rollcage.rollouts.toolservers import Heard
from rollcage.store.calls import Call
from rollcage.store.records import Subject

# Between two tries: short at first, since most trouble passes at once.
_FIRST_PAUSE = 0.02
_LONGEST_PAUSE = 1.0


@dataclass(slots=True)
class Job:
    """A call and how it fares. Times are the loop's own, so no clock can disturb them."""

    prepared: Prepared
    patience: Patience
    # Passed on, since asking for the running loop takes longer than asking it for the time.
    clock: Callable[[], float]
    began: float
    # The call is marked as possibly delivered, by us.
    marked: bool = False
    # The record could not be reached; the sandbox's journal keeps the call from running twice.
    bypassed: bool = False
    # It was begun before, and is tried again.
    tried: bool = False
    instead_of: str | None = None
    # Another call of the rollout may have reached the sandbox.
    delivered: bool = False
    placements: int = 0
    sendings: int = 0
    trouble_since: float | None = None
    pause: float = _FIRST_PAUSE

    @property
    def action(self) -> Action:
        """What was asked."""
        return self.prepared.action

    @property
    def call(self) -> Call:
        """The call as the record knows it."""
        return self.prepared.call

    @property
    def subject(self) -> Subject:
        """The rollout as the record knows it."""
        return Subject.of(self.action.rollout, run=self.action.run, environment=self.action.environment.name)

    @property
    def most(self) -> int:
        """How many calls its rollout may make."""
        return self.action.environment.spec.budgets.calls

    @property
    def lasted(self) -> float:
        """Seconds since the call was asked for."""
        return self.clock() - self.began

    @property
    def left(self) -> float:
        """Seconds until an answer is due, less what telling it takes."""
        return (self.action.within - self.patience.reserve).total_seconds() - self.lasted

    @property
    def had_its_time(self) -> bool:
        """Whether as long has passed as any call may take."""
        return self.lasted >= self.action.environment.spec.limits.max_timeout_seconds

    def troubled(self) -> float:
        """Return for how many seconds there has been trouble, from now on if there was none."""
        now = self.clock()
        if self.trouble_since is None:
            self.trouble_since = now
        return now - self.trouble_since

    def may_retry(self, heard: Heard, *, delivered: bool, boot: str) -> bool:
        """Tell whether there is a try left, of those that this kind of trouble deserves."""
        match heard.came:
            case Came.BUSY:
                return self.troubled() < self.patience.busy.total_seconds()
            case Came.UNHEARD:
                return self.marked and bool(boot) and heard.boot == boot and self.sendings < self.patience.sendings
            case Came.TAKEN_BACK:
                return True
            case _ if delivered:
                return self.troubled() < self.patience.word.total_seconds()
            case _:
                return self.placements < self.patience.placements

    async def rest(self) -> None:
        """Wait a moment before the next try, each time longer."""
        await asyncio.sleep(min(self.pause, max(self.left, 0.0)))
        self.pause = min(self.pause * 2, _LONGEST_PAUSE)

    def cpu(self, heard: Heard) -> CpuTime | None:
        """Return what the call got of the node's processors, as far as its sandbox tells."""
        facts = heard.fields.get("facts") or {}
        pressure = facts.get("pressure") or {}
        if heard.came is not Came.RESULT or pressure.get("source") != "psi":
            return None
        used = pressure.get("used_ms")
        return CpuTime(
            lasted=timedelta(milliseconds=facts.get("duration_ms", 0)),
            stalled=timedelta(milliseconds=pressure.get("stalled_ms", 0)),
            used=None if used is None else timedelta(milliseconds=used),
            promised_cores=float(amount(self.action.environment.spec.resources.requests.cpu)),
        )
