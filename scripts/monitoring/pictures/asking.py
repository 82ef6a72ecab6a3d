"""
Ask Prometheus what Grafana would ask for a panel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.prometheus import Prometheus

# Both Grafana's default for a data source and what the chart's monitors ask for.
_SCRAPED: Final = 15.0
# Grafana's rule: so many scrapes at least are in the window of a rate.
_SCRAPES_IN_RATE: Final = 4

_UNITS: Final = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True)
class Window:
    """The time that is shown, in seconds since 1970."""

    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class Series:
    """One answer: its name in the legend, its labels, its figures over time."""

    name: str
    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float:
        """The latest figure."""
        return self.points[-1][1]


@dataclass(frozen=True, slots=True)
class Answers:
    """All that a panel shows, and how far apart its points are."""

    series: tuple[Series, ...]
    step: float


async def answers(
    panel: Any, *, chosen: Mapping[str, str], prometheus: Prometheus, window: Window, width: float
) -> Answers:
    """Ask a panel's questions, with these values of the dashboard's variables."""
    step = max((window.end - window.begin) / width, _seconds(panel.get("interval", "")) or _SCRAPED)
    inserted = {
        **chosen,
        "__rate_interval": f"{round(max(step + _SCRAPED, _SCRAPES_IN_RATE * _SCRAPED))}s",
        "__range": f"{round(window.end - window.begin)}s",
    }
    found: list[Series] = []
    for target in panel["targets"]:
        expr = re.sub(r"\$(\w+)", lambda name: inserted[name[1]], target["expr"])
        if target["instant"]:
            told = [(one["metric"], [one["value"]]) for one in await prometheus.ask(expr, at=window.end)]
        else:
            # As Grafana does: at multiples of the step, so that a picture does not tremble.
            begin, end = (edge // step * step for edge in (window.begin, window.end))
            asked = await prometheus.between(expr, begin=begin, end=end, step=step)
            told = [(one["metric"], one["values"]) for one in asked]
        for labels, values in told:
            points = [(float(at), float(value)) for at, value in values if value != "NaN"]
            if points:
                found.append(Series(_named(target["legendFormat"], labels), labels, tuple(points)))
    return Answers(tuple(found), step)


def _named(legend: str, labels: Mapping[str, str]) -> str:
    return re.sub(r"{{(\w+)}}", lambda label: labels.get(label[1], ""), legend)


def _seconds(interval: str) -> float:
    return float(interval[:-1]) * _UNITS[interval[-1]] if interval else 0.0
