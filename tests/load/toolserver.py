"""
A no-op shell call over HTTP against a bare fork and exec of the same command.

Both sides run ``/bin/sh -c true`` on this machine, in turns. The floor is Go
like the toolserver, so that the ratio speaks of the toolserver's own work:
HTTP, signature, journal, pipes, sweep, facts.
"""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from lab.images import GO_BUILD, build_toolserver
from lab.places import scratch
from lab.talk import run
from load.frame import LATENCY_HEADER, Outcome, latency_row
from support.bare_wire import Wire
from support.local_toolserver import Launcher, LocalToolserver

if TYPE_CHECKING:
    import argparse

FLOOR = Path(__file__).parent / "floor"
SHELL = ["/bin/sh", "-c"]
MIB = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--each", type=int, default=25, help="calls of each side in a round")
    parser.add_argument("--starts", type=int, default=15, help="how often to start it, for ready_ms")
    parser.add_argument("--callers", type=int, default=4, help="callers at once, for calls_per_second")


def measure(options: argparse.Namespace) -> Outcome:
    """Measure the binary's size, its start, its idle memory and its calls."""
    with scratch() as tmp:
        binary, floor = tmp / "toolserver", tmp / "floor"
        build_toolserver(binary)
        run([*GO_BUILD, "-o", floor, "."], cwd=FLOOR)
        launcher = Launcher(binary, tmp, tmp / "log")
        starts = [_start(launcher) for _ in range(options.starts)]
        with launcher.start(shell=SHELL) as server:
            bare, called = _alternate(floor, server, rounds=options.rounds, each=options.each)
            rate = _calls_per_second(server, callers=options.callers, each=options.each * 4)
        size = binary.stat().st_size
    figures = {
        "shell_overhead_ratio_p50": round(statistics.median(called) / statistics.median(bare), 3),
        "idle_rss_mb": round(statistics.median(rss for _, rss in starts) / MIB, 1),
        "ready_ms": round(1000 * statistics.median(seconds for seconds, _ in starts), 1),
        "binary_mb": round(size / MIB, 1),
        "calls_per_second": round(rate),
    }
    rows = [latency_row("bare fork-exec", bare), latency_row("shell over HTTP", called)]
    return Outcome(figures, LATENCY_HEADER, rows)


def _start(launcher: Launcher) -> tuple[float, int]:
    """Return the seconds from start to ready, and the resident memory then."""
    began = time.perf_counter()
    with launcher.start(shell=SHELL) as server:
        while not server.ready():
            pass
        took = time.perf_counter() - began
        status = Path(f"/proc/{server.process.pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return took, 1024 * int(resident.split()[1])


def _alternate(floor: Path, server: LocalToolserver, *, rounds: int, each: int) -> tuple[list[float], list[float]]:
    bare: list[float] = []
    called: list[float] = []
    caller = _Caller(server, "alternate")
    with subprocess.Popen([floor], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        for number in range(-1, rounds):
            process.stdin.write(f"{each}\n")
            process.stdin.flush()
            bare_now = [int(word) / 1e9 for word in process.stdout.readline().split()]
            called_now = [caller.call() for _ in range(each)]
            if number >= 0:  # the first round warms up
                bare += bare_now
                called += called_now
        process.stdin.close()
    caller.close()
    return bare, called


def _calls_per_second(server: LocalToolserver, *, callers: int, each: int) -> float:
    def call_many(caller: _Caller) -> None:
        for _ in range(each):
            caller.call()
        caller.close()

    began = time.perf_counter()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(call_many, [_Caller(server, f"thread-{number}") for number in range(callers)]))
    return callers * each / (time.perf_counter() - began)


class _Caller:
    """Makes no-op calls, one after the other."""

    def __init__(self, server: LocalToolserver, name: str) -> None:
        self._wire = Wire(server.dial())
        self._ids = (f"{name}-{number}" for number in itertools.count())
        self._head = f"POST /v1/calls HTTP/1.1\r\nHost: x\r\nAuthorization: {server.authorization()}\r\n"

    def call(self) -> float:
        """Run a no-op, and return the seconds it took."""
        body = json.dumps({"call_id": next(self._ids), "tool": "shell", "arguments": {"command": "true"}})
        took, answer = self._wire.timed(self._head, body)
        if json.loads(answer)["facts"]["exit_code"] != 0:
            raise AssertionError(answer)
        return took

    def close(self) -> None:
        """Hang up."""
        self._wire.close()
