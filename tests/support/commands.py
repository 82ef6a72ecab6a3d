"""
The ``rollcage`` command, run in this process as a shell would run it.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.cli.app import main

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True, slots=True)
class Command:
    """Runs the command."""

    patches: pytest.MonkeyPatch
    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Said:
        self.patches.setattr(sys, "argv", ["rollcage", *arguments])
        for name, value in (variables or {}).items():
            self.patches.setenv(name, value)
        self.captured.readouterr()
        # A thread of its own: a command may run an event loop, and the test has one already.
        with ThreadPoolExecutor(1) as thread:
            code = thread.submit(_ended).result()
        out, err = self.captured.readouterr()
        return Said(code, out, err)


def _ended() -> int:
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)
