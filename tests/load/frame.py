"""
The frame of every benchmark: alternate, measure, print.

Machines are noisy, so a figure that matters is a ratio of two sides measured
in turns within one run. A benchmark is a module of this package with
``add_arguments(parser)`` and ``measure(options) -> Outcome``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import load
from lab.talk import LabError, complain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NOT_BENCHMARKS = {"frame", "ground", "served"}


@dataclass(frozen=True)
class Outcome:
    """What a benchmark found: figures for programs, a table for people."""

    figures: Mapping[str, float]
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = field(default_factory=tuple)
    notes: Sequence[str] = ()


def alternate(
    sides: Mapping[str, Callable[[], None]], *, rounds: int, warmup: int, each: int = 1
) -> dict[str, list[float]]:
    """
    Time the sides in turns and return the seconds of every call.

    Each round times every side *each* times; the first *warmup* rounds count for nothing.
    """
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(-warmup, rounds):
        for name, side in sides.items():
            for _ in range(each):
                began = time.perf_counter()
                side()
                took = time.perf_counter() - began
                if number >= 0:
                    seconds[name].append(took)
    return seconds


def quantile(values: Sequence[float], q: float) -> float:
    """Return the *q*-quantile by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(q * len(ordered)))]


def latency_row(name: str, seconds: Sequence[float]) -> list[str]:
    """Return a row of the latency table."""
    points = (statistics.median(seconds), quantile(seconds, 0.9), quantile(seconds, 0.99), max(seconds))
    return [name, str(len(seconds)), *(f"{1000 * point:.2f}" for point in points)]


LATENCY_HEADER = ("side", "calls", "p50 ms", "p90 ms", "p99 ms", "max ms")


def machine() -> dict[str, str | int | float]:
    """Say what the figures were measured on."""
    memory = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.machine(),
        "cores": os.cpu_count() or 0,
        "memory_gib": round(int(memory.split()[1]) / (1 << 20)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 1),
    }


def show(outcome: Outcome) -> None:
    """Print the outcome for people."""
    table = [list(outcome.header), *(list(row) for row in outcome.rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(outcome.header))]
    for first, *rest in table:
        print(
            first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)), sep="  "
        )
    for note in outcome.notes:
        print(note)
    print()
    for name, value in outcome.figures.items():
        print(f"{name:32} {value:g}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark that the command line names."""
    names = sorted(found.name for found in pkgutil.iter_modules(load.__path__) if found.name not in NOT_BENCHMARKS)
    parser = argparse.ArgumentParser(prog="scripts/bench")
    benchmarks = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    for name in names:
        module = importlib.import_module(f"load.{name}")
        promise = next(line for line in (module.__doc__ or name).splitlines() if line)
        command = benchmarks.add_parser(name, help=promise, description=module.__doc__)
        command.add_argument("--json", action="store_true", help="print the figures as JSON on the last line")
        module.add_arguments(command)
    options = parser.parse_args(argv)
    about = machine()
    try:
        outcome: Outcome = importlib.import_module(f"load.{options.name}").measure(options)
    except LabError as error:
        return complain(error)
    show(outcome)
    if options.json:
        print(json.dumps({"bench": options.name, "figures": dict(outcome.figures), "machine": about}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
