"""Attacks of processes that want to outlive their command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import OutcomeClass

if TYPE_CHECKING:
    from support.sandboxes import SandboxPod

ESCAPES = {
    "a session of its own": "setsid nohup sleep 1e9 > /dev/null 2>&1 &",
    "two forks": "(setsid sh -c '(sleep 1e9 &) ; exit' &) ;",
    "an empty environment": "env -i setsid sleep 1e9 &",
    "deaf ears": "trap '' TERM INT HUP QUIT; setsid sleep 1e9 &",
    "other limits": "(ulimit -S -c 0; ulimit -n 10; setsid sleep 1e9 &) ;",
    "another priority": "setsid nice -n 19 sleep 1e9 &",
    "a chain that re-creates itself": "setsid sh -c 'f() { sleep 0.01; f & exit; }; f' &",
}


@pytest.mark.parametrize("end", ["sleep 1e9", "true", "cat", "exec sleep 1e9"])
@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES.keys())
def test_nothing_outlives_its_command_by(shared: SandboxPod, escape: str, end: str) -> None:
    result = shared.shell(f"{escape} {end}", timeout_ms=1000)

    assert result.outcome in {OutcomeClass.OK, OutcomeClass.TIMED_OUT}
    assert (result.outcome == OutcomeClass.TIMED_OUT) == ("sleep" in end)
    assert shared.processes() == []


def test_a_process_that_removes_its_mark_is_still_found(shared: SandboxPod) -> None:
    """The mark is a resource limit, which a process may change."""
    unmark = """
import os, resource, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for limit in (15, 5):  # RLIMIT_RTTIME, RLIMIT_RSS
            try:
                resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            except (ValueError, OSError):
                pass
        for fd in range(3):
            os.close(fd)
        time.sleep(1e6)
    os._exit(0)
os.wait()
"""
    shared.python(unmark)

    assert shared.processes() == []
