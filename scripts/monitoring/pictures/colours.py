"""
The colours that Grafana gives: by a panel's own word, else in the order of the series.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of the dark theme.
NAMED: Final = {
    "text": "#ccccdc",
    "green": "#73bf69",
    "dark-green": "#37872d",
    "yellow": "#fade2a",
    "dark-yellow": "#e0b400",
    "orange": "#ff9830",
    "red": "#f2495c",
    "dark-red": "#c4162a",
    "blue": "#5794f2",
    "light-blue": "#8ab8ff",
    "purple": "#b877d9",
    "gray": "#808080",
}
# The classic palette, as far as our panels have series.
_IN_ORDER: Final = (
    *("#73bf69", "#f2cc0c", "#8ab8ff", "#ff780a", "#f2495c", "#5794f2", "#b877d9", "#705da0"),
    *("#37872d", "#fade2a", "#447ebc", "#c15c17", "#890f02", "#0a437c", "#6d1f62", "#584477"),
    *("#b7dbab", "#f4d598", "#70dbed", "#f9ba8f", "#f29191", "#82b5d8", "#e5a8e2", "#aea2e0"),
)


def of_series(panel: Any, names: Sequence[str]) -> list[str]:
    """Return the colour of each series, which have these names."""
    fixed = {name: colour for name in names if (colour := _fixed(panel, name))}
    return [fixed.get(name, _IN_ORDER[place % len(_IN_ORDER)]) for place, name in enumerate(names)]


def of_figure(panel: Any, value: float) -> str:
    """Return the colour of the highest threshold that a figure has reached."""
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return NAMED[reached[-1]]


def lines(panel: Any) -> list[tuple[float, str]]:
    """Return the thresholds at which a panel wants lines, with their colours."""
    defaults = panel["fieldConfig"]["defaults"]
    match defaults.get("custom", {}).get("thresholdsStyle", {}).get("mode", "off"):
        case "off":
            return []
        case "dashed":
            steps = defaults["thresholds"]["steps"]
            return [(step["value"], NAMED[step["color"]]) for step in steps if step["value"] is not None]
        case other:
            raise NotImplementedError(other)


def _fixed(panel: Any, name: str) -> str:
    found = ""
    for override in panel["fieldConfig"]["overrides"]:
        for wanted in override["properties"]:
            if wanted["id"] == "color" and _matches(override["matcher"], name):
                found = NAMED[wanted["value"]["fixedColor"]]
    return found


def _matches(matcher: Any, name: str) -> bool:
    match matcher["id"]:
        case "byName":
            return bool(name == matcher["options"])
        case "byRegexp":
            return re.search(matcher["options"].strip("/"), name) is not None
        case other:
            raise NotImplementedError(other)
