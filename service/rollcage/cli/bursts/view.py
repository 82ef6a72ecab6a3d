"""
Show a burst while it runs: a live picture on a terminal, a line now and then elsewhere.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from rollcage.cli.bursts.figures import causes
from rollcage.cli.bursts.trainer import Trainer
from rollcage.core.verdict_words import Word
from rollcage.reports.burst_data import PoolLevel

# A log is read afterwards; it needs no picture every quarter of a second.
_LINE_EVERY: Final = 2.0


@dataclass(frozen=True, slots=True)
class State:
    """How a burst stands."""

    rollouts: int
    done: int
    trained: int
    masked: Mapping[str, int]
    """By cause."""
    seconds: float
    level: PoolLevel | None

    @classmethod
    def of(cls, trainer: Trainer, *, rollouts: int, level: PoolLevel | None) -> Self:
        """Return how a trainer's burst stands now."""
        words = Counter(played.word for played in trainer.over)
        masked = MappingProxyType(causes(trainer.over))
        return cls(rollouts, len(trainer.over), words[Word.TRAINABLE], masked, trainer.now, level)

    @property
    def over(self) -> bool:
        """Whether every rollout is over."""
        return self.done == self.rollouts


class View(Protocol):
    """Whatever shows how a burst stands."""

    def show(self, state: State) -> None:
        """Show it now."""


class Lines:
    """A plain line now and then."""

    def __init__(self, write: Callable[[str], None], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._next = 0.0
        self._last = ""

    def show(self, state: State) -> None:
        """Write a line if it is time for one, and surely at the end."""
        if self._clock() < self._next and not state.over:
            return
        self._next = self._clock() + _LINE_EVERY
        line = plain(state)
        if line != self._last:
            self._write(f"{state.seconds:5.1f} s  {line}")
        self._last = line


def plain(state: State) -> str:
    """Return one line for it."""
    level = state.level
    pool = f"warm {level.warm}  claimed {level.claimed}  queued {level.queued}  " if level else ""
    masked = " ".join(f"{cause}={number}" for cause, number in sorted(state.masked.items()))
    return (
        f"{pool}done {state.done}/{state.rollouts}  trained on {state.trained}  "
        f"masked {sum(state.masked.values())}{f' ({masked})' if masked else ''}"
    )


class _Picture:
    def __init__(self, live: Live) -> None:
        self._live = live

    def show(self, state: State) -> None:
        """Draw it."""
        self._live.update(_drawn(state), refresh=True)


def _drawn(state: State) -> Group:
    table = Table.grid(padding=(0, 3))
    for _ in range(6):
        table.add_column(justify="right", min_width=7)
    table.add_row(*(Text(name, style="dim") for name in ("warm", "claimed", "queued", "done", "trained on", "masked")))
    level = state.level
    table.add_row(
        *((str(level.warm), str(level.claimed), str(level.queued)) if level else ("?", "?", "?")),
        f"{state.done}/{state.rollouts}",
        Text(str(state.trained), style="green"),
        Text(str(sum(state.masked.values())), style="yellow"),
    )
    masked = ", ".join(f"{cause} {number}" for cause, number in sorted(state.masked.items()))
    # The bar comes last, because it does not end its line.
    return Group(
        table,
        Text(f"masked because: {masked}" if masked else "", style="yellow"),
        ProgressBar(total=state.rollouts, completed=state.done, width=60),
    )


@contextmanager
def shown(console: Console) -> Iterator[View]:
    """Lend a view that suits the console."""
    if not console.is_terminal:
        yield Lines(lambda line: console.print(line, highlight=False, soft_wrap=True))
        return
    with Live(console=console, auto_refresh=False) as live:
        yield _Picture(live)
