"""
Show things: tables for people, JSON for programs.

Ids, arguments and outputs come from a model. Nothing in them may move the
cursor, change the title of a terminal or pass for another text.
"""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import typer
from pydantic import BaseModel
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Control characters, and those that turn the direction of writing.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# A pipe has no width of its own; a table in one should not be folded.
_PIPE_WIDTH: Final = 10_000

# What a table may be shortened to before it says too little, and what prose needs at least.
_READABLE: Final = 0.8
_PROSE: Final = 24

_NOTHING: Final = "-"

_COLOURS: Final = {
    "trainable": "green",
    "ok": "green",
    "proceed": "green",
    "masked": "yellow",
    "hold": "yellow",
    "warning": "yellow",
    "abandoned": "dim",
    "refused": "yellow",
    "skip": "red",
    "broken": "red",
}


def say_json(value: Any) -> None:
    """Print a value for programs."""
    typer.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False))


def say_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, nothing: str) -> None:
    """
    Print a table, or in *nothing*'s words that it is empty.

    A column of figures is marked with #, one of prose, which may be folded,
    with ~. Others are shortened where a terminal is too narrow, but for the
    first: it names things, and a name is there to be copied.
    """
    table = Table(box=None, header_style="bold underline", padding=(0, 2, 0, 0), pad_edge=False)
    names = [column.rstrip(" #~") for column in columns]
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        table.add_column(
            name,
            justify="right" if column.endswith("#") else "left",
            overflow="fold" if number == 0 else "ellipsis",
            # The first is folded only where there is no prose to be folded instead.
            no_wrap=not column.endswith("~") and (number > 0 or any(other.endswith("~") for other in columns)),
        )
    cells = [tuple(map(cell, row)) for row in rows]
    page = console()
    if not cells:
        typer.echo(nothing)
    elif _readable(columns, cells, page.width):
        for row in cells:
            table.add_row(*row)
        _print(page, table)
    else:
        for number, row in enumerate(cells):
            if number:
                typer.echo()
            say_fields(zip(names, row, strict=True))


def _readable(columns: Sequence[str], cells: Iterable[Sequence[Text]], width: int) -> bool:
    """Decide whether there is room for a table; if not, one thing below the other reads better."""
    widths = (max(map(cell_len, texts)) for texts in zip(columns, *map(_plain_texts, cells), strict=True))
    wanted = [min(wide, _PROSE) if column.endswith("~") else wide for column, wide in zip(columns, widths, strict=True)]
    return (sum(wanted) + 2 * len(wanted)) * _READABLE <= width


def _plain_texts(row: Sequence[Text]) -> tuple[str, ...]:
    return tuple(text.plain for text in row)


def say_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one under the other; those without a value are left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        text = cell(value)
        if text.plain not in {"", _NOTHING}:
            table.add_row(name, text)
    _print(console(), table)


def cell(value: Any) -> Text:
    """Return a value as a person reads it."""
    if isinstance(value, Text):
        return value
    if value is None:
        return Text(_NOTHING, style="dim")
    if isinstance(value, datetime):
        return Text(moment(value))
    text = figure(value) if isinstance(value, float) else clean(str(value))
    return Text(text, style=_COLOURS.get(text, ""))


def moment(value: datetime, *, now: datetime | None = None) -> str:
    """Return a time by this machine's clock; of today without the date."""
    here, today = value.astimezone(), (now or datetime.now(UTC)).astimezone().date()
    return f"{here:%H:%M:%S}" if here.date() == today else f"{here:%Y-%m-%d %H:%M:%S}"


def figure(value: float) -> str:
    """Return a number to three places, without any that say nothing."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def clean(text: str) -> str:
    """Return a text without anything that a terminal would obey."""
    return _UNSAFE.sub("\ufffd", text)


def excerpt(text: str, most: int) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"


def console() -> Console:
    """Return the terminal, or a wide page where there is none."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_WIDTH
    return Console(width=width, highlight=False)


def _print(page: Console, table: Table) -> None:
    # Cells are filled up to their column's width, which helps nobody at the end of a line.
    with page.capture() as caught:
        page.print(table)
    for line in caught.get().splitlines():
        typer.echo(line.rstrip())


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value
