"""
The frame of a plot: its size, its axes, its legend.

What is drawn inside belongs to ``plots``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rollcage.reports.markup import Markup, element, joined, text
from rollcage.reports.scales import Scale, Spelling, plain

# Narrow enough that letters stay readable when a telephone shrinks the plot.
WIDTH: Final = 480.0
HEIGHT: Final = 240.0

_LEFT: Final = 46.0
_RIGHT: Final = 12.0
_TOP: Final = 12.0
_BOTTOM: Final = 40.0

# About as wide as a figure in a plot's letters.
_LETTER: Final = 7.4


@dataclass(frozen=True, slots=True)
class Frame:
    """Where a plot's area begins and ends."""

    width: float = WIDTH
    height: float = HEIGHT
    left: float = _LEFT
    bottom: float = _BOTTOM

    @property
    def x(self) -> tuple[float, float]:
        """From left to right."""
        return self.left, self.width - _RIGHT

    @property
    def y(self) -> tuple[float, float]:
        """From the bottom up, as figures grow."""
        return self.height - self.bottom, _TOP


def drawing(frame: Frame, label: str, *parts: Markup) -> Markup:
    """Return a whole plot; *label* is for those who cannot see it."""
    return element(
        "svg",
        element("title", text(label)),
        *parts,
        viewBox=f"0 0 {frame.width:g} {frame.height:g}",
        role="img",
        # Rows stand below their title, whatever stands beside them.
        class_="rows" if frame.height != HEIGHT else None,
        aria_label=label,
    )


def x_axis(frame: Frame, scale: Scale, name: str, spell: Spelling = plain, *, clock: bool = False) -> Markup:
    """Draw the axis below."""
    base = frame.y[0]
    ticks = scale.ticks(5, clock=clock)
    marks = [
        joined(
            element("line", x1=scale(tick), x2=scale(tick), y1=base, y2=base + 4, class_="tick"),
            element("text", text(spell(tick)), x=scale(tick), y=base + 17, text_anchor="middle"),
        )
        for tick in ticks
    ]
    line = element("line", x1=frame.x[0], x2=frame.x[1], y1=base, y2=base, class_="axis")
    middle = sum(frame.x) / 2
    named = element("text", text(name), x=middle, y=frame.height - 5, text_anchor="middle", class_="name")
    return joined(line, *marks, named)


def y_axis(frame: Frame, scale: Scale, spell: Spelling = plain, *, whole: bool = False) -> Markup:
    """Draw the figures at the left, with lines across; only whole ones where halves make no sense."""
    left, right = frame.x
    ticks = [tick for tick in scale.ticks(4) if not whole or tick == round(tick)]
    return joined(
        *(
            joined(
                element("line", x1=left, x2=right, y1=scale(tick), y2=scale(tick), class_="grid"),
                element("text", text(spell(tick)), x=left - 7, y=scale(tick) + 4, text_anchor="end"),
            )
            for tick in ticks
        )
    )


def rows(frame: Frame, labels: Sequence[str], height: float) -> Markup:
    """Write a label at the left of each row, cut to what fits."""
    most = max(4, int((frame.left - 10) / _LETTER))
    return joined(
        *(
            element(
                "text",
                element("title", text(label)),
                text(label if len(label) <= most else f"{label[: most - 1]}…"),
                x=frame.left - 8,
                y=_TOP + (index + 0.5) * height + 4,
                text_anchor="end",
            )
            for index, label in enumerate(labels)
        )
    )


def legend(entries: Sequence[tuple[str, str]]) -> Markup:
    """Return what each colour means: (class, words)."""
    return element(
        "p",
        *(element("span", element("i", class_=f"swatch {kind}"), text(words)) for kind, words in entries),
        class_="legend",
    )


def row_frame(count: int, height: float, left: float) -> Frame:
    """Return a frame for so many rows."""
    return Frame(height=_TOP + max(count, 1) * height + _BOTTOM, left=left)


TOP: Final = _TOP
