"""
Tell people how the pools fare: in metrics at every look, in each environment's status when there is news.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollcage.controller.fares import fare
from rollcage.telemetry.labels import PoolLabel

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from datetime import timedelta

    from rollcage.controller.hands import Hands
    from rollcage.controller.orders import Look
    from rollcage.controller.view import View
    from rollcage.sandboxes.recipes import Fare
    from rollcage.telemetry.metrics import Metrics


class Reporting:
    """Remembers what was told, and tells each environment's news at most once in *every*."""

    def __init__(self, *, hands: Hands, view: View, metrics: Metrics, every: timedelta) -> None:
        self._hands = hands
        self._view = view
        self._metrics = metrics
        self._every = every.total_seconds()
        self._told: dict[str, tuple[float, Fare]] = {}

    def tell(self, looks: Mapping[str, Look], environments: Container[str], now: float) -> None:
        """Measure all, and report on those *environments* of which there is news."""
        for name, look in looks.items():
            self._measure(look)
            told_at, told = self._told.get(name, (0.0, None))
            news = fare(look.stock, look.counts, look.goal, self._hands.troubles.get(name), self._view.seen)
            if name not in environments or news == told or now - told_at < self._every:
                continue
            self._told[name] = (now, news)
            self._hands.report(name, news)

    def _measure(self, look: Look) -> None:
        name, supply = look.goal.name, look.stock.supply
        self._metrics.pool.at(name, PoolLabel.WANTED).set(look.goal.warm)
        self._metrics.pool.at(name, PoolLabel.READY).set(len(supply.idle))
        self._metrics.pool.at(name, PoolLabel.STARTING).set(len(supply.starting))
        self._metrics.pool.at(name, PoolLabel.CLAIMED).set(len(look.stock.bound))
        self._metrics.pool.at(name, PoolLabel.RESERVED).set(look.counts.reserved)
        self._metrics.pool.at(name, PoolLabel.MOST).set(look.goal.most)
        self._metrics.queue_length.at(name).set(look.counts.waiting)
