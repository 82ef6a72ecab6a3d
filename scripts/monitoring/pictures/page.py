"""
Put a dashboard's panels in their places.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from monitoring.pictures import colours
from monitoring.pictures.panels import drawn
from rollcage.reports.markup import EMPTY, Markup, element, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from monitoring.pictures.asking import Answers, Window

WIDTH: Final = 1680
# Grafana's grid, a bit taller: what it shows on asking, a panel's description, stands in the picture.
_COLUMNS: Final = 24
_CELL: Final = 36.0
_GAP: Final = 8.0
_HEAD: Final = 40.0
_TITLE: Final = 50.0
_PADDING: Final = 10.0
_LETTER: Final = 6.6
_LEGEND_LINE: Final = 17.0
# Of a panel's height, at most; what does not fit has to be scrolled to.
_LEGEND_SHARE: Final = 0.35

_LOOK: Final = """
body { margin: 0; background: #111217; color: #ccccdc; font: 12.5px/1.3 Inter, "DejaVu Sans", sans-serif; }
section, h1, h2 { position: absolute; box-sizing: border-box; margin: 0; overflow: hidden; }
section { background: #181b1f; border: 1px solid #2a2d33; border-radius: 3px; padding: 6px 10px 0; }
h1 { left: 8px; top: 10px; font-size: 21px; font-weight: 500; } h1 small { font-size: 13px; color: #9fa3ad; }
h2 { font-size: 15px; font-weight: 500; padding-top: 9px; }
h3 { margin: 0; font-size: 14px; font-weight: 500; white-space: nowrap; }
h3 + p { margin: 0; font-size: 11px; line-height: 13px; height: 26px; overflow: hidden; color: #9fa3ad; }
svg { display: block; } svg text { font-size: 11px; fill: #9fa3ad; }
.grid { stroke: #26292f; } .axis { stroke: #3a3d44; }
.line { fill: none; stroke-width: 1.5; stroke-linejoin: round; }
.legend { overflow: hidden; line-height: 17px; font-size: 12px; }
.legend span { margin-right: 14px; display: inline-block; white-space: pre; }
.legend i { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin: 0 6px 3px 0; }
.nothing { text-align: center; padding-top: 60px; font-size: 16px; color: #9fa3ad; }
.stat { text-align: center; padding-top: 24px; } .stat p { margin: 4px; } .stat b { display: block; font-size: 52px; }
.stat small { font-size: 15px; }
table { border-collapse: collapse; width: 100%; } th { color: #6e9fff; font-weight: 500; }
th, td { text-align: left; padding: 5px 8px; border-bottom: 1px solid #2a2d33; }
"""


def page(board: Any, answered: Mapping[int, Answers], *, window: Window) -> str:
    """Return a dashboard as a page of its own; *answered* by the place among its panels."""
    spell = "%H:%M"
    when = f"{time.strftime(spell, time.gmtime(window.begin))} to {time.strftime(spell, time.gmtime(window.end))} UTC"
    head = element("h1", text(f"{board['title']} "), element("small", text(f"{when} · {board['description']}")))
    panels = [
        _row(panel) if panel["type"] == "row" else _panel(panel, answered[place], window)
        for place, panel in enumerate(board["panels"])
    ]
    height = max(_box(panel["gridPos"])[1] + _box(panel["gridPos"])[3] for panel in board["panels"]) + _GAP
    body = element("body", head, *panels, style=f"width: {WIDTH}px; height: {height:g}px")
    return "<!doctype html>" + element("html", element("style", Markup(_LOOK)), body)


def inside(place: Mapping[str, int]) -> float:
    """Return how wide a panel's inside is."""
    return _box(place)[2] - 2 * _PADDING - 2


def _panel(panel: Any, answers: Answers, window: Window) -> Markup:
    place = panel["gridPos"]
    width, room = inside(place), _box(place)[3] - _TITLE
    legend, taken = _legend(panel, answers, width, room * _LEGEND_SHARE)
    return element(
        "section",
        element("h3", text(panel["title"])),
        element("p", text(panel["description"])),
        drawn(panel, answers, window=window, width=width, height=room - taken),
        legend,
        style=_style(place),
    )


def _legend(panel: Any, answers: Answers, width: float, most: float) -> tuple[Markup, float]:
    """Return the legend and the height that it takes."""
    if panel["type"] != "timeseries" or not answers.series:
        return EMPTY, 0.0
    if panel["options"] is not None:
        raise NotImplementedError(panel["options"])
    names = [one.name for one in answers.series]
    entries = [
        element("span", element("i", style=f"background: {colour}"), text(name))
        for name, colour in zip(names, colours.of_series(panel, names), strict=True)
    ]
    lines = sum(_LETTER * len(name) + 36 for name in names) // width + 1
    height = min(lines * _LEGEND_LINE + 4, most)
    return element("div", *entries, class_="legend", style=f"height: {height:g}px"), height


def _row(panel: Any) -> Markup:
    return element("h2", text(panel["title"]), style=_style(panel["gridPos"]))


def _style(place: Mapping[str, int]) -> str:
    left, top, width, height = _box(place)
    return f"left: {left:.1f}px; top: {top:.1f}px; width: {width:.1f}px; height: {height:.1f}px"


def _box(place: Mapping[str, int]) -> tuple[float, float, float, float]:
    column = (WIDTH - (_COLUMNS + 1) * _GAP) / _COLUMNS
    return (
        _GAP + place["x"] * (column + _GAP),
        _HEAD + place["y"] * (_CELL + _GAP),
        place["w"] * (column + _GAP) - _GAP,
        place["h"] * (_CELL + _GAP) - _GAP,
    )
