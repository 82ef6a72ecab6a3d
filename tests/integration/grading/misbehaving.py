"""Graders of a team that tests everybody's patience."""

import ctypes
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rollcage.grading import Context, Refused, Score


def plain(context: Context) -> float:
    return float(context.answer.text)


async def awaited(context: Context) -> Score:
    return Score(0.5, {"calls": float(len(context.trajectory))}, (f"item {context.item['id']}",))


def raises(_context: Context) -> float:
    raise ValueError("a secret of the dataset")


def exits(_context: Context) -> float:
    os._exit(0)


def leaves(_context: Context) -> float:
    sys.exit(0)


def segfaults(_context: Context) -> float:
    ctypes.string_at(0)
    return 1.0


def hangs(_context: Context) -> float:
    while True:
        time.sleep(1)


def spins_with_children(context: Context) -> float:
    children = [subprocess.Popen(["sleep", "1000"]) for _ in range(30)]
    Path(context.options["note"]).write_text(" ".join(str(child.pid) for child in children))
    while True:
        pass


def says(context: Context) -> Any:
    return {
        "nan": float("nan"),
        "inf": float("inf"),
        "minus inf": float("-inf"),
        "too high": 1.01,
        "too low": -0.01,
        "none": None,
        "a text": "1.0",
        "a score of nothing": Score(None),  # type: ignore[arg-type]
        "a part that is no number": Score(1.0, {"x": float("nan")}),
    }[context.answer.text]


def prints_a_lot(_context: Context) -> float:
    for _ in range(2000):
        sys.stdout.write("x" * 10_000 + "\n")
        sys.stderr.write("y" * 10_000 + "\n")
    os.write(1, b'\0\0\0\x10\0\0\0\0{"kind":"score"}')
    return 0.25


def kills_its_maker(_context: Context) -> float:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(1000)
    return 1.0


def draws(_context: Context) -> float:
    return random.random()  # noqa: S311 - no secret


def eats_memory(_context: Context) -> float:
    return float(len(bytearray(8 << 30)))


def refuses(_context: Context) -> float:
    raise Refused("the reference cannot be had")


def counts_itself(context: Context) -> float:
    note = Path(context.options["note"])
    count = int(note.read_text()) + 1 if note.exists() else 1
    note.write_text(str(count))
    return count / 10


def looks_around(_context: Context) -> Score:
    found = sorted(name for name in os.environ if name.startswith(("ROLLCAGE_", "GRADER_", "SECRET")))
    return Score(float(len(found)) / 10, notes=tuple(found))


async def swallows(context: Context) -> float:
    try:
        ran = await context.sandbox.run("true", environment="gone")
    except Exception:  # noqa: BLE001 - as careless graders do
        return 0.0
    return float(ran.passed)


async def looks_at_artifacts(context: Context) -> Score:
    return Score(len(context.artifacts.names) / 100, notes=(*context.artifacts.names, *context.artifacts.absent))
