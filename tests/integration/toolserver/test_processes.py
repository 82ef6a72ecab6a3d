"""Whatever a command starts ends with it, however it tries to get away."""

from __future__ import annotations

import itertools
import os
import sys
from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import OutcomeClass
from support.local_toolserver import alive
from support.waiting import until

if TYPE_CHECKING:
    from support.local_toolserver import LocalToolserver

_numbers = itertools.count(1)

ESCAPES = {
    "in the background": "sleep {word} & sleep {word}",
    "in a session of its own": "setsid sleep {word} & sleep {word}",
    "immune to hang-ups": "setsid nohup sleep {word} > /dev/null 2>&1 & sleep {word}",
    "forked twice": "(setsid sh -c '(sleep {word} &) ; exit' &) ; sleep {word}",
    "without an environment": "env -i setsid sleep {word} & sleep {word}",
    "ignoring every request to end": "trap '' TERM INT HUP; setsid sh -c 'sleep {word}; sleep {word}' & sleep {word}",
    "stopped": "setsid sh -c 'kill -STOP $$; sleep {word}' {word} & sleep {word}",
    "with its streams closed": "setsid sleep {word} <&- >&- 2>&- & sleep {word}",
    "named like a kernel thread": "setsid "
    + sys.executable
    + ' -c "import time; time.sleep(1e6)" {word} & sleep {word}',
}


@pytest.fixture
def word() -> str:
    """A number of seconds that no other process of this machine sleeps for."""
    return f"{100_000 + os.getpid()}.{next(_numbers)}"


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
def test_nothing_survives_the_time_limit(sandbox: LocalToolserver, escape: str, word: str) -> None:
    result = sandbox.shell(escape.format(word=word), timeout_ms=400)

    assert result.outcome == OutcomeClass.TIMED_OUT
    assert alive(word) == []


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
def test_nothing_survives_the_end_of_its_command(sandbox: LocalToolserver, escape: str, word: str) -> None:
    started, _, _ = escape.format(word=word).rpartition("sleep")

    result = sandbox.shell(f"{started} true")

    assert result.outcome == OutcomeClass.OK
    assert result.facts.duration_ms < 10_000
    assert alive(word) == []


def test_a_background_process_does_not_hold_its_command_up(sandbox: LocalToolserver, word: str) -> None:
    result = sandbox.shell(f"sleep {word} & echo started")

    assert result.output == "started\n"


def test_a_command_does_not_end_what_another_one_runs(sandbox: LocalToolserver, word: str) -> None:
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command=f"sleep {word} &")
    until(lambda: len(alive(word)) == 1)

    sandbox.shell("setsid sleep 1000 & true")

    assert len(alive(word)) == 1


def test_zombies_are_reaped(sandbox: LocalToolserver) -> None:
    orphans = "for i in $(seq 50); do (setsid true &) ; done"
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command=orphans)

    zombies = f"ps -o stat= --ppid {sandbox.process.pid} | grep -c Z"

    # One that ends just now may wait for its turn.
    until(lambda: sandbox.shell(zombies).output.startswith("0\n"))
