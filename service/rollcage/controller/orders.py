"""
Decide what to do now about all environments together: how many starts each, and which sandboxes go.

Pure. What each environment lacks or has too much is known; here it is fitted
into what the cluster can take at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rollcage.core.pace import deletions_allowed, shared, starts_allowed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rollcage.controller.planning import Goal, Stock
    from rollcage.controller.troubles import Troubles
    from rollcage.core.pace import Burst, Pace
    from rollcage.core.pool import Plan
    from rollcage.store.pools import Counts, Whereabouts

ENDED: Final = "ended"
SPENT: Final = "spent"
USELESS: Final = "useless"


@dataclass(frozen=True, slots=True)
class Look:
    """One environment as it was just seen, and what it would take to bring it to its goal."""

    goal: Goal
    stock: Stock
    counts: Counts
    fates: Mapping[str, Whereabouts]
    plan: Plan

    @property
    def ready(self) -> int:
        """How many serve nobody and could."""
        return len(self.stock.supply.idle)

    @property
    def unschedulable(self) -> int:
        """How many starts wait for room on a node."""
        return sum(one.unschedulable for one in self.stock.supply.starting)

    @property
    def cramped(self) -> bool:
        """Whether starts wait for deletions to make room."""
        return self.unschedulable > 0 or self.plan.cramped


def creations(
    looks: Mapping[str, Look], *, pace: Pace, burst: Burst, troubles: Troubles, writes: int, now: float
) -> dict[str, int]:
    """
    Return how many sandboxes to ask for; *writes* is how many requests may be made.

    Starts crowd each other no more than whoever has the least ready can bear, and never for a stock's
    sake while rollouts are served: they may run on the same nodes.
    """
    crowding = sum(len(look.stock.supply.starting) - look.unschedulable for look in looks.values())
    wants = {name: _wanted(look, pace, burst, troubles, now) for name, look in looks.items()}
    urgent = tuple(name for name, look in looks.items() if look.counts.waiting)
    serving = any(look.stock.bound for look in looks.values())
    least = 0 if serving else min((look.ready for name, look in looks.items() if wants[name]), default=0)
    return shared(min(pace.starts_beside(least) - crowding, writes), wants, first=urgent)


def _wanted(look: Look, pace: Pace, burst: Burst, troubles: Troubles, now: float) -> int:
    name = look.goal.name
    if not troubles.may_start(name, now) or not burst.leaves_room(now, waiting=look.counts.waiting):
        return 0
    if troubles.probing(name):
        return min(look.plan.create, 0 if look.stock.supply.starting else 1)
    allowed = starts_allowed(pace, stock=look.ready, need_room=look.plan.cramped, leaving=look.stock.leaving)
    return max(0, min(look.plan.create, allowed - len(look.stock.supply.starting)))


def removals(
    looks: Mapping[str, Look], *, ended: Collection[str], useless: Collection[str], going: int, pace: Pace, writes: int
) -> tuple[tuple[str, str], ...]:
    """Return the sandboxes to remove now, and why, *going* of them being on their way out already."""
    leaving = [(name, ENDED) for name in ended]
    leaving += [(name, SPENT) for look in looks.values() for name in look.stock.spent]
    leaving += [(name, USELESS) for look in looks.values() for name in look.stock.useless]
    leaving += [(name, USELESS) for name in useless]
    leaving += [(one.name, one.why) for look in looks.values() for one in look.plan.remove]
    starting = any(look.stock.supply.starting or look.plan.create for look in looks.values())
    allowed = deletions_allowed(pace, starting=starting, need_room=any(look.cramped for look in looks.values()))
    return tuple(leaving[: max(0, min(allowed - going, writes))])


def may_label(looks: Mapping[str, Look], *, burst: Burst, now: float) -> bool:
    """Tell whether labels take nothing from a burst, nor from the starts that rollouts wait for."""
    return burst.is_over(now) and not any(look.counts.waiting and look.stock.supply.starting for look in looks.values())
