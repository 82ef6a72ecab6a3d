"""From the start of a sandbox to its end."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from support.local_toolserver import alive
from support.waiting import until

if TYPE_CHECKING:
    from support.local_toolserver import Launcher, LocalToolserver, Start

MIB = 1 << 20
# It stops within milliseconds; what is told apart is one that waits for its commands.
SOON = 5.0


def test_a_sandbox_becomes_ready_by_itself(start: Start) -> None:
    until(start().ready)


def test_an_idle_sandbox_is_small(sandbox: LocalToolserver) -> None:
    assert sandbox.peak_memory() < 16 * MIB


def test_the_state_tells_who_and_since_when(sandbox: LocalToolserver) -> None:
    state = sandbox.state()

    assert (state.sandbox, state.ready, state.bound_to) == ("sbx-1", True, None)
    assert re.fullmatch(r"[A-Z2-7]{26}", state.boot_id)
    started = datetime.fromisoformat(state.started_at)
    assert timedelta(0) <= datetime.now(UTC) - started < timedelta(minutes=1)
    assert 0 <= state.uptime_ms < 60_000


def test_a_stop_ends_what_runs_and_says_that_it_was_not_the_model(sandbox: LocalToolserver, workdir: Path) -> None:
    command = "trap '' TERM; setsid sleep 7654321 & touch begun; sleep 7654321"
    with ThreadPoolExecutor() as pool:
        caller = pool.submit(sandbox.post, "shell", command=command)
        until((workdir / "begun").exists)

        assert sandbox.stop() < SOON

        assert caller.result(timeout=30).refusal == (500, "interrupted")
    assert alive("7654321") == []


def test_a_stop_ends_sessions_and_what_runs_in_their_background(sandbox: LocalToolserver) -> None:
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command="setsid sleep 7654322 & sleep 7654322 &")
    until(lambda: len(alive("7654322")) == 2)

    assert sandbox.stop() < SOON

    assert alive("7654322") == []


def test_a_stop_ends_streams_with_an_error(sandbox: LocalToolserver) -> None:
    with ThreadPoolExecutor() as pool, sandbox.stream("shell", command="echo x; sleep 1000") as events:
        assert next(events).name == "output"
        stopping = pool.submit(sandbox.stop)
        last = list(events)[-1]

        assert stopping.result(timeout=30) < SOON
    assert (last.name, last.json()["code"]) == ("error", "interrupted")


def test_an_idle_sandbox_stops_at_once(sandbox: LocalToolserver) -> None:
    assert sandbox.stop() < SOON


def test_an_idle_connection_does_not_delay_the_stop(sandbox: LocalToolserver) -> None:
    with sandbox.dial() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 200"

        assert sandbox.stop() < SOON


def test_what_crashes_nothing_else_does_not_crash_it(sandbox: LocalToolserver) -> None:
    """Signals that a terminal, a pipe or a careless program sends; as PID 1 it takes many more."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM):
        sandbox.process.send_signal(number)

    assert sandbox.shell("echo alive").output == "alive\n"


def test_children_ignore_no_signal_that_it_ignores(sandbox: LocalToolserver) -> None:
    ignored = sandbox.shell("grep SigIgn /proc/self/status").output.split()[1]

    assert int(ignored, 16) == 0


def test_children_inherit_no_descriptor(sandbox: LocalToolserver) -> None:
    descriptors = sandbox.shell("exec ls /proc/self/fd").output.split()

    # The fourth is ls's own, of the directory it reads.
    assert descriptors == ["0", "1", "2", "3"]


def test_its_memory_is_closed_to_its_children(sandbox: LocalToolserver) -> None:
    """Root may always look; what holds in a pod is tested there."""
    assert Path(f"/proc/{sandbox.process.pid}/mem").stat().st_uid == 0


def test_its_log_is_one_event_a_line(sandbox: LocalToolserver, launcher: Launcher) -> None:
    sandbox.stop()

    events = [event["msg"] for event in launcher.logged()]
    assert sorted(events[:2]) == ["ready", "serving"]
    assert events[2:] == ["stopping", "stopped"]


def test_the_binary_installs_itself(binary: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "toolserver"
    target.parent.mkdir()

    subprocess.run([binary, "install", target], check=True)

    assert target.read_bytes() == binary.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) & 0o555 == 0o555
    assert subprocess.run([target, "version"], capture_output=True, check=True).stdout


def test_anything_else_gets_its_usage(binary: Path) -> None:
    done = subprocess.run([binary, "sing"], capture_output=True, check=False)

    assert done.returncode == 2
    assert b"usage:" in done.stderr


def test_the_binary_is_small_and_static(binary: Path) -> None:
    assert binary.stat().st_size < 10 * MIB
    assert b"ld-linux" not in binary.read_bytes()
