"""
How the scripts talk: progress with durations, and failures with a hint.
"""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

# Enough of a failed command's output to see why, without flooding a terminal.
TAIL_LINES = 25
# How long a build may be silent before its watcher wonders.
PROGRESS_SECONDS = 20


class LabError(Exception):
    """Something the person at the terminal has to know, with what to do about it."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.hint = hint


def complain(error: LabError) -> int:
    """Print what went wrong and what to do about it; return the exit code for it."""
    print(f"error: {error}", file=sys.stderr)
    if error.hint:
        print(f"hint: {error.hint}", file=sys.stderr)
    return 1


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"[lab] {text}", file=sys.stderr, flush=True)


@contextmanager
def step(what: str) -> Iterator[None]:
    """Announce *what*, and how long it took."""
    say(f"{what} …")
    began = time.monotonic()
    yield
    say(f"{what}: done in {time.monotonic() - began:.0f} s")


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    log: Path | None = None,
    hint: str = "",
) -> str:
    """
    Run a command to its end and return what it printed on standard output.

    With *log* both streams go to that file instead, and its last line is shown now and then.
    """
    command = [str(part) for part in argv]
    if log is None:
        done = subprocess.run(command, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, check=False)
        code, stdout, output = done.returncode, done.stdout, done.stderr or done.stdout
    else:
        code, stdout = _run_logged(command, cwd, env, log), ""
        output = log.read_text(errors="replace")
    if code:
        tail = "\n".join(output.splitlines()[-TAIL_LINES:])
        where = f" (whole log: {log})" if log else ""
        raise LabError(f"{' '.join(command)} failed with {code}{where}\n{tail}", hint)
    return stdout


def _run_logged(command: list[str], cwd: Path | None, env: Mapping[str, str] | None, log: Path) -> int:
    with (
        log.open("w") as sink,
        subprocess.Popen(command, cwd=cwd, env=env, stdout=sink, stderr=sink) as process,
    ):
        began = time.monotonic()
        while True:
            try:
                return process.wait(timeout=PROGRESS_SECONDS)
            except subprocess.TimeoutExpired:
                lines = log.read_text(errors="replace").splitlines() or ["…"]
                say(f"  {time.monotonic() - began:.0f} s, {len(lines)} lines in {log}, now: {lines[-1][:80]}")


def succeeds(argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None) -> bool:
    """Tell whether a command can be run and exits with 0."""
    try:
        done = subprocess.run([str(part) for part in argv], env=env, capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0
