"""
Say how an environment fares, in the words of its status.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollcage.controller.troubles import OF_HOLD
from rollcage.sandboxes.recipes import Fare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollcage.controller.planning import Goal, Stock
    from rollcage.controller.troubles import Trouble
    from rollcage.sandboxes.source import Hold, Sandbox
    from rollcage.store.pools import Counts


def fare(stocked: Stock, counts: Counts, goal: Goal, trouble: Trouble | None, seen: Mapping[str, Sandbox]) -> Fare:
    """Return how an environment fares: full, filling, or held up by something that has a name."""
    ready = len(stocked.supply.idle)
    reason, message = _why(stocked, goal, trouble, _first_hold(stocked, seen))
    return Fare(
        ready=ready,
        starting=len(stocked.supply.starting),
        claimed=len(stocked.bound),
        waiting=counts.waiting,
        healthy=reason in {"Full", "Filling"},
        reason=reason,
        message=message,
    )


def _why(stocked: Stock, goal: Goal, trouble: Trouble | None, hold: Hold | None) -> tuple[str, str]:
    if hold:
        return OF_HOLD[hold.cause], hold.message
    if trouble:
        return trouble.reason, trouble.message
    if len(stocked.supply.idle) >= goal.warm:
        return "Full", ""
    return "Filling", f"{len(stocked.supply.idle)} of {goal.warm} are ready"


def _first_hold(stocked: Stock, seen: Mapping[str, Sandbox]) -> Hold | None:
    for one in stocked.supply.starting:
        sandbox = seen.get(one.name)
        if sandbox and sandbox.hold:
            return sandbox.hold
    return None
