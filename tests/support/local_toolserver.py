"""
Toolservers as plain processes of this machine, without any isolation: for harmless commands only.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from support.toolserver import KEYS, SECONDS, Toolserver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# It promises two, and a busy machine is not its fault.
STOP_SECONDS = 10.0
EXIT_STOPPED = 128 + signal.SIGTERM


class LocalToolserver(Toolserver):
    """A toolserver that is a process of this machine, without any isolation."""

    def __init__(self, dial: Callable[[], socket.socket], *, sandbox: str, process: subprocess.Popen[bytes]) -> None:
        super().__init__(dial, sandbox=sandbox)
        self.process = process

    def peak_memory(self) -> int:
        """Return the most memory it ever had resident, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        peak = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024

    def stop(self) -> float:
        """Ask it to stop, and return how many seconds that took; it must end well."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=STOP_SECONDS) == EXIT_STOPPED
        return time.monotonic() - began


class Start(Protocol):
    """Starts a sandbox with a configuration; it is stopped after the test."""

    def __call__(self, **config: Any) -> LocalToolserver: ...


@dataclass(frozen=True, slots=True)
class Launcher:
    """How local toolservers are started."""

    binary: Path
    workdir: Path
    log: Path

    @contextmanager
    def start(
        self, *, sandbox: str = "sbx-1", keys: str = KEYS, unix: bool = False, **config: Any
    ) -> Iterator[LocalToolserver]:
        """Lend a toolserver with a configuration; a socket that it inherits leaves no race for a port."""
        with self._listener(unix=unix) as listener:
            env = {
                "PATH": os.environ["PATH"],
                "ROLLCAGE_SANDBOX": sandbox,
                "ROLLCAGE_KEYS": keys,
                "ROLLCAGE_LISTEN": f"fd:{listener.fileno()}",
                "ROLLCAGE_CONFIG": json.dumps({"workdir": str(self.workdir), **config}),
            }
            with self.log.open("ab") as log:
                process = self._run(env, pass_fds=[listener.fileno()], stderr=log)
            family, address = listener.family, listener.getsockname()

        def dial() -> socket.socket:
            connection = socket.socket(family, socket.SOCK_STREAM)
            connection.settimeout(SECONDS)
            try:
                connection.connect(address)
            except OSError:
                connection.close()
                raise
            return connection

        server = LocalToolserver(dial, sandbox=sandbox, process=process)
        with process:
            try:
                yield server
                if process.poll() is None:
                    server.stop()
            finally:
                process.kill()

    def _run(self, env: dict[str, str], **popen: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([self.binary, "serve"], env=env, cwd=self.workdir, **popen)

    def _listener(self, *, unix: bool) -> socket.socket:
        if not unix:
            return socket.create_server(("127.0.0.1", 0))
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Relative to nothing: the path of a socket must be short, which pytest's directories are not.
        listener.bind(f"\0rollcage-test-{os.getpid()}-{time.monotonic_ns()}")
        listener.listen(512)
        return listener

    def refuse(self, **env: str) -> str:
        """Start one that must not start, and return what it logged."""
        usual = {"ROLLCAGE_SANDBOX": "sbx-1", "ROLLCAGE_KEYS": KEYS, "ROLLCAGE_LISTEN": "127.0.0.1:0"}
        done = subprocess.run(
            [self.binary, "serve"], env=usual | env, capture_output=True, timeout=SECONDS, check=False
        )
        assert done.returncode == 1, done
        return done.stderr.decode()

    def logged(self) -> list[dict[str, Any]]:
        """Return the events logged so far; a line that is not one event is an error."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]


def alive(word: str) -> list[int]:
    """Return the processes of this machine that have a word on their command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:
            continue  # Gone meanwhile.
        if word.encode() in words:
            found.append(int(entry.parent.name))
    return found
