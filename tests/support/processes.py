"""
The processes of this machine, each told by its number and the time of its start, since numbers are used again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    """One process, for ever."""

    pid: int
    started: int


def descendants(pid: int) -> set[Process]:
    """Return everything below a process, through all namespaces."""
    parents = {process: parent for process, parent, _ in _all()}
    below: set[int] = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return {Process(number, started) for number, _, started in _all() if number in below - {pid}}


def alive(processes: set[Process]) -> set[Process]:
    """Return those that still run; one that only waits to be reaped does not."""
    return processes & {Process(number, started) for number, _, started in _all()}


def _all() -> list[tuple[int, int, int]]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name in parentheses may hold anything.
            fields = stat.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue  # Gone meanwhile.
        if fields[0] != b"Z":
            found.append((int(stat.parent.name), int(fields[1]), int(fields[19])))
    return found
