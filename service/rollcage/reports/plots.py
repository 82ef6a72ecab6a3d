"""
Plots as inline SVG: no library, no script, colours by the page's own classes.

Each takes figures and returns markup; what they mean stands in the pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rollcage.reports.frames import TOP, Frame, drawing, x_axis, y_axis
from rollcage.reports.markup import Markup, element, text
from rollcage.reports.scales import Scale, Spelling, bins, edges, over, plain, quantile, seconds, wide

_BINS: Final = 28
_BUCKETS: Final = 36

# More points than this are a blot, and a heavy page.
_POINTS: Final = 1500
# A trend of fewer rollouts than this per point is noise.
_PER_POINT: Final = 5
_TREND: Final = 30

_MARKS_HEIGHT: Final = 46.0
_MARKS: Final = ((0.5, "median"), (0.95, "95 %"), (0.99, "99 %"))


@dataclass(frozen=True, slots=True)
class Point:
    """One thing at one time: its place, its colour, what it is."""

    x: float
    y: float
    kind: str
    label: str


def histogram(values: Sequence[float], *, name: str, spell: Spelling = seconds, of: str = "rollouts") -> Markup:
    """Draw how often which value came, with the median and the slow end marked."""
    frame = Frame()
    x = wide(values, *frame.x)
    bounds = edges(x, _BINS)
    counts = bins(values, bounds)
    # Room above the bars for the marks' words.
    y = over(counts, frame.y[0], TOP + _MARKS_HEIGHT)
    bars = [
        element(
            "rect",
            element("title", text(f"{count} {of}, {spell(low)} to {spell(high)}")),
            x=x(low) + 0.5,
            width=max(x(high) - x(low) - 1, 0.5),
            y=y(count),
            height=y(0) - y(count),
            rx=1.5,
            class_="c1",
        )
        for count, (low, high) in zip(counts, pairwise(bounds), strict=True)
        if count
    ]
    marks = _marks(values, x, frame, spell) if values else ()
    return drawing(frame, name, y_axis(frame, y, whole=True), *bars, *marks, x_axis(frame, x, name, spell, clock=True))


def _marks(values: Sequence[float], x: Scale, frame: Frame, spell: Spelling) -> list[Markup]:
    marks = []
    for index, (share, words) in enumerate(_MARKS):
        value = quantile(values, share)
        place, height = x(value), TOP + 10 + index * 15
        # Written where there is room for it.
        left = place > sum(frame.x) / 2
        marks.append(element("line", x1=place, x2=place, y1=frame.y[0], y2=height - 8, class_="mark"))
        marks.append(
            element(
                "text",
                text(f"{words} {spell(value)}"),
                x=place + (-5 if left else 5),
                y=height,
                text_anchor="end" if left else "start",
                class_="marked",
            )
        )
    return marks


def ecdf(series: Mapping[str, tuple[str, Sequence[float]]], *, name: str, spell: Spelling = seconds) -> Markup:
    """Draw which share of values is at most so large; *series* is class -> (words, values)."""
    frame = Frame()
    everything = [value for _, values in series.values() for value in values]
    x, y = wide(everything, *frame.x), Scale(0, 1, *frame.y)
    lines = []
    for kind, (words, values) in series.items():
        ordered = sorted(values)
        steps = [(x(value), y((place + 1) / len(ordered))) for place, value in enumerate(ordered)]
        if steps:
            corners = [(steps[0][0], y(0)), *_stairs(steps)]
            lines.append(_line(corners, kind, words))
    axes = (y_axis(frame, y, lambda share: f"{share:.0%}"), x_axis(frame, x, name, spell, clock=True))
    return drawing(frame, name, *axes, *lines)


def levels(
    series: Mapping[str, tuple[str, Sequence[tuple[float, float]]]], *, name: str, spell: Spelling = seconds
) -> Markup:
    """Draw figures over time as stairs: each holds until the next; *series* is class -> (words, points)."""
    frame = Frame()
    points = [point for _, line in series.values() for point in line]
    x, y = over([at for at, _ in points], *frame.x), over([value for _, value in points], *frame.y)
    lines = [
        _line(_stairs([(x(at), y(value)) for at, value in line]), kind, words)
        for kind, (words, line) in series.items()
        if line
    ]
    axes = (y_axis(frame, y, whole=True), x_axis(frame, x, name, spell, clock=True))
    return drawing(frame, name, *axes, *lines)


def scatter(
    points: Sequence[Point],
    *,
    name: str,
    what: str,
    spell: Spelling = plain,
    along: Spelling = seconds,
    trend: bool = True,
) -> Markup:
    """Draw things over time, or whatever *along* spells, with the mean of neighbours as a line."""
    frame = Frame()
    x, y = over([p.x for p in points], *frame.x), over([p.y for p in points], *frame.y)
    step = max(1, -(-len(points) // _POINTS))
    dots = [
        element("circle", element("title", text(p.label)), cx=x(p.x), cy=y(p.y), r=2.6, class_=f"dot {p.kind}")
        for p in points[::step]
    ]
    means = [(x(at), y(value)) for at, value in _means(points)] if trend else []
    line = (_line(means, "trend", f"mean {what}"),) if len(means) > 1 else ()
    figures = y_axis(frame, y, spell, whole=all(p.y == round(p.y) for p in points))
    below = x_axis(frame, x, name, along, clock=along is seconds)
    return drawing(frame, f"{what} {name}", figures, *dots, *line, below)


def _means(points: Sequence[Point]) -> list[tuple[float, float]]:
    ordered = sorted(points, key=lambda p: p.x)
    size = max(_PER_POINT, -(-len(ordered) // _TREND))
    groups = [ordered[start : start + size] for start in range(0, len(ordered), size)]
    if len(groups) > 1 and len(groups[-1]) < _PER_POINT:
        groups[-2:] = [groups[-2] + groups[-1]]
    return [(sum(p.x for p in group) / len(group), sum(p.y for p in group) / len(group)) for group in groups]


def stacked(
    times: Mapping[str, Sequence[float]],
    *,
    name: str,
    words: Mapping[str, str],
    along: Spelling = seconds,
    columns: Sequence[float] = (),
) -> Markup:
    """
    Draw how many of each kind began when, one upon the other; *times* is class -> when.

    *columns* are the bounds of the bars, where they have a meaning of their own.
    """
    frame = Frame()
    x = over([*columns, *(at for line in times.values() for at in line)], *frame.x)
    bounds = columns or edges(x, _BUCKETS)
    counted = {kind: bins(line, bounds) for kind, line in times.items()}
    heights = [sum(column) for column in zip(*counted.values(), strict=True)]
    y = over(heights, *frame.y)
    bars = []
    for place, (low, high) in enumerate(pairwise(bounds)):
        below = 0
        for kind, counts in counted.items():
            if count := counts[place]:
                bars.append(
                    element(
                        "rect",
                        element("title", text(f"{count} {words[kind]}")),
                        x=x(low) + 0.5,
                        width=x(high) - x(low) - 1,
                        y=y(below + count),
                        height=y(below) - y(below + count),
                        class_=kind,
                    )
                )
            below += count
    beside, under = y_axis(frame, y, whole=True), x_axis(frame, x, name, along, clock=along is seconds)
    return drawing(frame, name, beside, *bars, under)


def _stairs(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    corners = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        corners += [(x, before), (x, y)]
    return corners


def _line(points: Sequence[tuple[float, float]], kind: str, words: str) -> Markup:
    spelled = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", element("title", text(words)), points=spelled, class_=f"line {kind}")
