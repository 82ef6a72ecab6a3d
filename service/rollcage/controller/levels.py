"""
Tell everybody how the pools stand: what is wanted, and what is on its way.

For people who watch. The store counts the rest itself, and nothing is decided
by what is told here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollcage.store.pools import LEVELS_HOLD, Level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollcage.controller.orders import Look
    from rollcage.store.pools import LeadersPools


class Levels:
    """Remembers what was told, and says nothing twice before it would lapse."""

    def __init__(self, pools: LeadersPools) -> None:
        self._pools = pools
        self._told: Mapping[str, Level] | None = None
        self._again_at = 0.0

    async def tell(self, looks: Mapping[str, Look], now: float) -> None:
        """Tell it if it is news, or old."""
        levels = {
            name: Level(wanted=look.goal.warm, starting=len(look.stock.supply.starting)) for name, look in looks.items()
        }
        if levels == self._told and now < self._again_at:
            return
        await self._pools.tell(levels)
        self._told, self._again_at = levels, now + LEVELS_HOLD.total_seconds() / 3
