"""
Draw what a panel shows.

Each takes the panel as the dashboard has it and the answers to its questions,
and returns markup of the given size, without title and legend.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from monitoring.pictures import colours
from monitoring.pictures.spelling import spelling
from rollcage.reports.frames import Frame, drawing, x_axis, y_axis
from rollcage.reports.markup import EMPTY, Markup, element, joined, text
from rollcage.reports.scales import Scale, over

if TYPE_CHECKING:
    from collections.abc import Sequence

    from monitoring.pictures.asking import Answers, Series, Window

_LEFT: Final = 64.0
_BOTTOM: Final = 24.0
_BOUNDS: Final = ("min", "max", "axisSoftMin", "axisSoftMax")
# How much of the place between two points a bar takes, in Grafana's default.
_BAR: Final = 0.6
# As many marks as have room beside the rows of a heatmap.
_MARKS: Final = 9

# What is taken into account of a panel's settings.
_UNDERSTOOD: Final = {"custom", "max", "min", "thresholds", "unit"}
_UNDERSTOOD_CUSTOM: Final = {
    "axisSoftMax",
    "axisSoftMin",
    "drawStyle",
    "fillOpacity",
    "scaleDistribution",
    "stacking",
    "thresholdsStyle",
}

Points = dict[float, float]


def drawn(panel: Any, answers: Answers, *, window: Window, width: float, height: float) -> Markup:
    """Draw a panel's inside."""
    defaults = panel["fieldConfig"]["defaults"]
    if strange := (defaults.keys() - _UNDERSTOOD) | (defaults.get("custom", {}).keys() - _UNDERSTOOD_CUSTOM):
        raise NotImplementedError(", ".join(sorted(strange)))
    if not answers.series:
        return element("p", text("No data"), class_="nothing")
    frame = Frame(width, height, _LEFT, _BOTTOM)
    match panel["type"]:
        case "timeseries":
            return _time_series(panel, answers, frame, window)
        case "heatmap":
            return _heatmap(panel, answers, frame, window)
        case "stat":
            return _stat(panel, answers)
        case "table":
            return _table(panel, answers)
        case other:
            raise NotImplementedError(other)


def _time_series(panel: Any, answers: Answers, frame: Frame, window: Window) -> Markup:
    defaults = panel["fieldConfig"]["defaults"]
    custom = defaults["custom"]
    bars = custom.get("drawStyle", "line") == "bars"
    floors, tops = _piled(answers.series, stacked=custom.get("stacking", {}).get("mode", "none") == "normal")
    bounds = [found[bound] for found in (defaults, custom) for bound in _BOUNDS if bound in found]
    figures = [*bounds, *(figure for line in tops for figure in line.values())]
    powers = custom.get("scaleDistribution", {}).get("type", "linear") == "log"
    x = Scale(window.begin, window.end, *frame.x)
    y = _powers(figures, frame) if powers else over(figures, *frame.y, zero=bars)
    shade = custom.get("fillOpacity", 0) / 100
    parts = []
    for colour, floor, top in zip(_colours(panel, answers), floors, tops, strict=True):
        if bars:
            parts.append(_bars(x, y, floor, top, width=_BAR * answers.step, colour=colour, shade=shade))
        else:
            parts.append(_line(x, y, top, step=answers.step, colour=colour, shade=shade))
    for value, colour in colours.lines(panel):
        if y.low <= value <= y.high:
            ends = {"x1": frame.x[0], "x2": frame.x[1], "y1": y(value), "y2": y(value)}
            parts.append(element("line", stroke=colour, stroke_dasharray="7 5", **ends))
    beside = y_axis(frame, y, spelling(defaults["unit"]), whole=defaults["unit"].startswith("bool"))
    return drawing(frame, panel["title"], beside, *parts, _clock(frame, x))


def _powers(figures: Sequence[float], frame: Frame) -> Scale:
    """Return a scale of powers of ten, from one to another."""
    places = [math.log10(figure) for figure in figures if figure > 0] or [0.0]
    low = math.floor(min(places))
    return Scale(10**low, 10 ** max(math.ceil(max(places)), low + 1), *frame.y, log=True)


def _piled(series: Sequence[Series], *, stacked: bool) -> tuple[list[Points], list[Points]]:
    """Return from where to where each series reaches at each time."""
    height: defaultdict[float, float] = defaultdict(float)
    floors, tops = [], []
    for one in series:
        floors.append({at: height[at] for at, _ in one.points})
        tops.append({at: height[at] + value for at, value in one.points})
        if stacked:
            height.update(tops[-1])
    return floors, tops


def _bars(x: Scale, y: Scale, floor: Points, top: Points, *, width: float, colour: str, shade: float) -> Markup:
    return joined(
        *(
            element(
                "rect",
                x=max(x(at - width / 2), x.start),
                width=min(x(at + width / 2), x.end) - max(x(at - width / 2), x.start),
                y=y(top[at]),
                height=y(floor[at]) - y(top[at]),
                fill=colour,
                fill_opacity=f"{shade:g}",
                stroke=colour,
            )
            for at in top
            if top[at] > floor[at] and x.low <= at <= x.high
        )
    )


def _line(x: Scale, y: Scale, points: Points, *, step: float, colour: str, shade: float) -> Markup:
    """Draw lines through what belongs together; one figure that stands alone is a dot."""
    pieces: list[list[float]] = [[]]
    for before, at in pairwise([float("-inf"), *(at for at in points if at >= x.low)]):
        if at - before > 1.5 * step:
            pieces.append([])
        pieces[-1].append(at)
    parts = []
    for piece in pieces:
        corners = [f"{x(at):.1f},{y(points[at]):.1f}" for at in piece]
        if len(piece) == 1:
            parts.append(element("circle", cx=x(piece[0]), cy=y(points[piece[0]]), r=2.5, fill=colour))
        elif piece:
            ground = [f"{x(at):.1f},{y(max(y.low, 0)):.1f}" for at in (piece[-1], piece[0])]
            parts.append(element("polygon", points=" ".join(corners + ground), fill=colour, fill_opacity=f"{shade:g}"))
            parts.append(element("polyline", points=" ".join(corners), stroke=colour, class_="line"))
    return joined(*parts)


def _heatmap(panel: Any, answers: Answers, frame: Frame, window: Window) -> Markup:
    """Draw a row for each bucket, the lowest at the bottom, and in it how many fell into that one alone."""
    buckets = sorted(answers.series, key=lambda one: float(one.labels["le"]))
    x, rows = Scale(window.begin, window.end, *frame.x), Scale(0, len(buckets), *frame.y)
    counts: list[Points] = []
    below: Points = {}
    for bucket in buckets:
        counts.append({at: value - below.get(at, 0) for at, value in bucket.points})
        below = dict(bucket.points)
    most = max(count for row in counts for count in row.values())
    least = panel["options"]["filterValues"]["le"]
    exponent = panel["options"]["color"]["exponent"]
    cells = [
        element(
            "rect",
            x=max(x(at - answers.step), x.start),
            width=x(at) - max(x(at - answers.step), x.start) - 1,
            y=rows(place + 1),
            height=rows(place) - rows(place + 1) - 1,
            fill=f"hsl(28 90% {16 + 62 * (count / most) ** exponent:.0f}%)",
        )
        for place, row in enumerate(counts)
        for at, count in row.items()
        if count > least and x.low < at <= x.high
    ]
    spell = spelling(panel["options"]["yAxis"]["unit"])
    every = -(-len(buckets) // _MARKS)
    marks = [
        element("text", text(_bound(bucket, spell)), x=frame.x[0] - 7, y=rows(place + 0.5) + 4, text_anchor="end")
        for place, bucket in enumerate(buckets)
        if place % every == 0
    ]
    scale = element("text", text(f"most in a cell: {most:.3g}"), x=frame.x[1], y=frame.y[1] - 2, text_anchor="end")
    return drawing(frame, panel["title"], *cells, *marks, scale, _clock(frame, x))


def _bound(bucket: Series, spell: Any) -> str:
    return "more" if bucket.labels["le"] == "+Inf" else str(spell(float(bucket.labels["le"])))


def _stat(panel: Any, answers: Answers) -> Markup:
    spell = spelling(panel["fieldConfig"]["defaults"]["unit"])
    several = len(answers.series) > 1
    return element(
        "div",
        *(
            element(
                "p",
                element("small", text(one.name)) if several else EMPTY,
                element("b", text(spell(one.last)), style=f"color: {colours.of_figure(panel, one.last)}"),
            )
            for one in answers.series
        ),
        class_="stat",
    )


def _table(panel: Any, answers: Answers) -> Markup:
    defaults = panel["fieldConfig"]["defaults"]
    spell = spelling(defaults["unit"])
    stamp = "%Y-%m-%d %H:%M:%S"
    rows = [
        {"Time": time.strftime(stamp, time.gmtime(one.points[-1][0])), **one.labels, "Value": spell(one.last)}
        for one in answers.series
    ]
    for transformation in panel["transformations"]:
        rows = [_transformed(transformation, row) for row in rows]
    head = element("tr", *(element("th", text(column)) for column in rows[0]))
    body = (element("tr", *(element("td", text(cell)) for cell in row.values())) for row in rows)
    return element("table", head, *body)


def _transformed(transformation: Any, row: dict[str, str]) -> dict[str, str]:
    if transformation["id"] != "organize":
        raise NotImplementedError(transformation["id"])
    options = transformation["options"]
    places = options.get("indexByName", {})
    kept = [column for column in row if not options.get("excludeByName", {}).get(column)]
    kept.sort(key=lambda column: places.get(column, len(row)))
    return {options.get("renameByName", {}).get(column, column): row[column] for column in kept}


def _colours(panel: Any, answers: Answers) -> list[str]:
    return colours.of_series(panel, [one.name for one in answers.series])


def _clock(frame: Frame, x: Scale) -> Markup:
    return x_axis(frame, x, "", lambda at: time.strftime("%H:%M", time.gmtime(at)), clock=True)
