"""
``rollcage dev`` as somebody starts it: a process, and what it prints.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMAND = (sys.executable, "-c", "from rollcage.cli.app import main; main()", "dev")
# Compiling the toolserver, on a busy machine.
SECONDS = 240.0


@dataclass(frozen=True)
class Dev:
    """A service that was started by hand."""

    process: subprocess.Popen[bytes]
    output: Path

    def says(self) -> str:
        """Return everything that it has printed."""
        return self.output.read_text(errors="replace")

    def line(self, pattern: str) -> str:
        """Return the first line that fits."""
        found = re.search(f"^.*{pattern}.*$", self.says(), re.MULTILINE)
        assert found, self.says()
        return found[0].strip()

    @property
    def variables(self) -> dict[str, str]:
        """What it tells people to export."""
        words = self.line("export ").split()[1:]
        return dict(word.split("=", 1) for word in words)

    def get(self, target: str) -> Any:
        """Ask the service something."""
        told = self.variables
        headers = {"Authorization": f"Bearer {told['ROLLCAGE_TOKEN']}"}
        answer = httpx.get(told["ROLLCAGE_URL"] + target, headers=headers, timeout=60, trust_env=False)
        assert answer.is_success, answer.text
        return answer.json()


@contextmanager
def dev(directory: Path, *options: str) -> Iterator[Dev]:
    """Start it with a temporary directory of its own, and lend it once it is up."""
    output = directory.with_suffix(".log")
    env = {**os.environ, "TMPDIR": str(directory)}
    with output.open("wb") as sink:
        process = subprocess.Popen([*COMMAND, "--port", "0", *options], env=env, stdout=sink, stderr=sink)
    running = Dev(process, output)
    try:
        until(lambda: process.poll() is not None or "Ctrl-C" in running.says(), seconds=SECONDS)
        assert process.poll() is None, running.says()
        yield running
    finally:
        process.terminate()
        process.wait(timeout=60)
        output.unlink()
