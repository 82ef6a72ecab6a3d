"""
Plots with a row, a strip or a lane for each thing; otherwise as ``plots``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rollcage.reports.frames import TOP, Frame, drawing, row_frame, rows, x_axis, y_axis
from rollcage.reports.markup import Markup, element, joined, text
from rollcage.reports.scales import Scale, Spelling, over, plain, seconds, wide

_ROW: Final = 26.0


@dataclass(frozen=True, slots=True)
class Spread:
    """A row with its lowest, middle and highest; *flat* if there is nothing between them."""

    label: str
    low: float
    middle: float
    high: float
    note: str
    flat: bool = False


def bars(counts: Sequence[tuple[str, float, str]], *, name: str, spell: Spelling = plain) -> Markup:
    """Draw one bar for each (label, figure, class)."""
    frame = row_frame(len(counts), _ROW, 164)
    x = over([count for _, count, _ in counts], frame.x[0], frame.x[1] - 40)
    drawn = [
        joined(
            element(
                "rect",
                x=frame.left,
                y=TOP + index * _ROW + 5,
                width=max(x(count) - frame.left, 1.0),
                height=_ROW - 10,
                rx=2,
                class_=kind,
            ),
            element("text", text(spell(count)), x=x(count) + 6, y=TOP + (index + 0.5) * _ROW + 4, class_="marked"),
        )
        for index, (_, count, kind) in enumerate(counts)
    ]
    return drawing(frame, name, rows(frame, [label for label, _, _ in counts], _ROW), *drawn, x_axis(frame, x, name))


def spreads(given: Sequence[Spread], *, name: str, spell: Spelling = seconds) -> Markup:
    """Draw a row for each: from its lowest to its highest, with the middle as a dot."""
    frame = row_frame(len(given), _ROW, 130)
    x = wide([value for one in given for value in (one.low, one.middle, one.high)], *frame.x)
    drawn = []
    for index, one in enumerate(given):
        height = TOP + (index + 0.5) * _ROW
        drawn.append(
            element(
                "g",
                element("title", text(f"{one.label}: {one.note}")),
                element("line", x1=x(one.low), x2=x(one.high), y1=height, y2=height, stroke_width=5, class_="range c1"),
                element("circle", cx=x(one.middle), cy=height, r=4.5, class_="c1"),
            )
        )
    labels = rows(frame, [one.label for one in given], _ROW)
    return drawing(frame, name, labels, *drawn, x_axis(frame, x, name, spell))


def strips(given: Sequence[Spread], *, name: str) -> Markup:
    """Draw a strip for each, from its lowest to its highest, with the middle as a dot; flat ones are hollow."""
    frame = Frame()
    y = over([value for one in given for value in (one.low, one.middle, one.high)], *frame.y)
    x = Scale(0, len(given) + 1, *frame.x)
    width = min(5.0, 0.6 * (x(1) - x(0)))
    drawn = [
        element(
            "g",
            element("title", text(f"{one.label}: {one.note}")),
            element(
                "line",
                x1=x(place),
                x2=x(place),
                y1=y(one.low),
                y2=y(one.high),
                stroke_width=width,
                class_=f"range {'flat' if one.flat else 'c1'}",
            ),
            element(
                "circle",
                cx=x(place),
                cy=y(one.middle),
                r=max(1.6, width * 0.75),
                class_="middle flat" if one.flat else "c1",
            ),
        )
        for place, one in enumerate(given, 1)
    ]
    return drawing(frame, name, y_axis(frame, y), *drawn, x_axis(frame, x, name))


def lanes(given: Sequence[tuple[float, float, float, str, str]], *, name: str) -> Markup:
    """Draw a lane for each (asked, answered, ended, class, label): how long it waited, how long it worked."""
    frame = Frame(left=14)
    x = over([ended for _, _, ended, _, _ in given], *frame.x)
    bottom, top = frame.y
    height = (bottom - top) / max(len(given), 1)
    thick = max(0.6, height - (1 if height > 3 else 0))  # noqa: PLR2004 - a gap, where there is room for one
    drawn = []
    for index, (asked, answered, ended, kind, label) in enumerate(given):
        y = top + index * height
        drawn.append(
            element(
                "g",
                element("title", text(label)),
                element("rect", x=x(asked), y=y, width=max(x(answered) - x(asked), 0.4), height=thick, class_="wait"),
                element("rect", x=x(answered), y=y, width=max(x(ended) - x(answered), 0.4), height=thick, class_=kind),
            )
        )
    return drawing(frame, name, *drawn, x_axis(frame, x, name, seconds, clock=True))
