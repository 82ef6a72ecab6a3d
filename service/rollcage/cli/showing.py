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
from datetime import datetime
from typing import Any, Final

import typer
from pydantic import BaseModel
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Control characters, and those that turn the direction of writing.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

# A pipe has no width of its own; a table in one should not be folded.
_PIPE_WIDTH: Final = 250

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
    """Print a table, or in *nothing*'s words that it is empty; a column of figures is marked with #."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(
            column.removesuffix(" #"), justify="right" if column.endswith("#") else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*map(cell, row))
    if table.row_count:
        console().print(table)
    else:
        typer.echo(nothing)


def say_fields(fields: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one under the other."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in fields:
        if value not in (None, ""):
            table.add_row(name, cell(value))
    console().print(table)


def cell(value: Any) -> Text:
    """Return a value as a person reads it."""
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, datetime):
        return Text(f"{value.astimezone():%Y-%m-%d %H:%M:%S}")
    text = f"{value:.3g}" if isinstance(value, float) else clean(str(value))
    return Text(text, style=_COLOURS.get(text, ""))


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


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
