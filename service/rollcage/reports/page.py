"""
A page for people, whole in one file: no script, nothing from elsewhere.

Its policy forbids scripts and requests, so that even a mistake in escaping
could do nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from rollcage.reports.markup import EMPTY, Markup, element, text

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

# A list of thousands helps nobody; the record has them all.
_LONGEST: Final = 50


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure that is read first."""

    name: str
    value: str
    note: str = ""
    # good, warning, bad, or plain.
    mood: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One plot, its title, and what to see in it."""

    title: str
    plot: Markup
    words: str = ""
    legend: Markup = EMPTY


def page(
    *, title: str, under: Sequence[str], tiles: Sequence[Tile], cards: Sequence[Card], rest: Sequence[Markup] = ()
) -> str:
    """Return the whole file."""
    head = element(
        "head",
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        Markup('<meta name="viewport" content="width=device-width,initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        element("title", text(title)),
        element("style", Markup(_look())),
    )
    top = element(
        "header",
        element("p", text("Rollcage"), class_="brand"),
        element("h1", text(title)),
        *(element("p", text(line), class_="under") for line in under),
    )
    body = element(
        "body",
        element(
            "main",
            top,
            element("section", *map(_tile, tiles), class_="tiles"),
            element("section", *map(_card, cards), class_="cards"),
            *rest,
        ),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def table(title: str, columns: Sequence[str], given: Sequence[Sequence[object]]) -> Markup:
    """Return a table that is folded away; nothing if it has no rows."""
    if not given:
        return EMPTY
    shown = given[:_LONGEST]
    more = f", {_LONGEST} of {len(given)}" if len(given) > _LONGEST else f", {len(given)}"
    head = element("tr", *(element("th", text(column)) for column in columns))
    body = (element("tr", *(element("td", text(value)) for value in row)) for row in shown)
    scrolled = element("div", element("table", element("thead", head), element("tbody", *body)), class_="scroll")
    return element("details", element("summary", text(f"{title}{more}")), scrolled)


def _tile(tile: Tile) -> Markup:
    note = (element("small", text(tile.note)),) if tile.note else ()
    value = element("strong", text(tile.value))
    return element("div", element("span", text(tile.name)), value, *note, class_=f"tile {tile.mood}".rstrip())


def _card(card: Card) -> Markup:
    words = (element("p", text(card.words)),) if card.words else ()
    return element(
        "figure",
        element("figcaption", element("h2", text(card.title)), *words),
        card.legend,
        card.plot,
        class_="card",
    )


@cache
def _look() -> str:
    return files(__package__).joinpath("look.css").read_text(encoding="utf-8")


def nothing(words: str) -> Markup:
    """Stand where a plot would, and say why there is none."""
    return element("p", text(words), class_="nothing")
