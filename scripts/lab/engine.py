"""
A Docker engine: the one that is running, else one of our own.

Our own has its socket, data and pid file in the cache, adds no firewall rules
and no default bridge, and is stopped by its process id. An engine that was
there before is used but never started, stopped or configured.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lab import packages
from lab.places import CACHE, cache
from lab.talk import LabError, run, say, succeeds

if TYPE_CHECKING:
    from collections.abc import Callable

HOME = CACHE / "engine"
SOCKET = HOME / "docker.sock"
PID_FILE = HOME / "dockerd.pid"
START_SECONDS = 60
STOP_SECONDS = 60


@dataclass(frozen=True)
class Engine:
    """A running engine and how to reach it."""

    host: str | None
    """The value of DOCKER_HOST, or None for the client's own default."""

    @property
    def env(self) -> dict[str, str]:
        """The environment in which ``docker`` and ``kind`` use this engine."""
        # BuildKit is a separate download on Debian; the classic builder does all we need.
        extra = {"DOCKER_BUILDKIT": "0"} | ({"DOCKER_HOST": self.host} if self.host else {})
        return {**os.environ, **extra}

    def docker(self, *args: str | Path, stdin: str | None = None) -> str:
        """Run the docker client and return what it printed."""
        return run(["docker", *args], env=self.env, stdin=stdin)

    def has_image(self, name: str) -> bool:
        """Tell whether an image is in the engine's store."""
        return succeeds(["docker", "image", "inspect", name], env=self.env)

    def can_pull(self, name: str) -> bool:
        """Tell whether an image is here or can be brought here."""
        return self.has_image(name) or succeeds(["timeout", "600", "docker", "pull", "-q", name], env=self.env)

    def containers(self) -> list[str]:
        """Return the ids of all containers, running or not."""
        return self.docker("ps", "-aq").split()


def running() -> Engine | None:
    """Return the engine in use: ours if it runs, else the user's own, else none."""
    for engine in (Engine(f"unix://{SOCKET}"), Engine(None)):
        if engine.host and not SOCKET.exists():
            continue
        if shutil.which("docker") and succeeds(["timeout", "20", "docker", "version"], env=engine.env):
            return engine
    return None


def ensure(*, install: bool) -> Engine:
    """Return a running engine, started if there is none."""
    engine = running()
    return engine or _start(install=install)


def stop_ours() -> None:
    """Stop our own engine, if it runs and holds no container."""
    engine = running()
    pid = _our_pid()
    if engine is None or engine.host is None or pid is None or engine.containers():
        return
    if "kind" in engine.docker("network", "ls", "--format", "{{.Name}}").split():
        engine.docker("network", "rm", "kind")
    os.kill(pid, signal.SIGTERM)
    _wait(lambda: _our_pid() is None, STOP_SECONDS, f"the engine (process {pid}) did not stop")
    # An engine that was killed leaves its data bound onto itself, and the next one takes that for granted.
    data = HOME / "data"
    if f" {data} " in Path("/proc/self/mounts").read_text():  # on its own file system, so is_mount() sees nothing
        run(["umount", data])
    say("stopped our Docker engine")


def _start(*, install: bool) -> Engine:
    packages.need(*packages.RUN_ENGINE, install=install)
    if os.geteuid() != 0:
        raise LabError("no Docker engine is running, and starting one takes root", "start Docker, or run this as root")
    home = cache("engine")
    log = (cache("logs") / "dockerd.log").open("w")
    subprocess.Popen(
        [
            "dockerd",
            f"--host=unix://{SOCKET}",
            f"--data-root={home / 'data'}",
            f"--exec-root={home / 'run'}",
            f"--pidfile={PID_FILE}",
            # Leaves no rules behind. Node containers reach each other and the
            # host without them; they do not reach the internet.
            "--iptables=false",
            "--ip6tables=false",
            "--bridge=none",
        ],
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    engine = Engine(f"unix://{SOCKET}")
    _wait(
        lambda: succeeds(["docker", "version"], env=engine.env),
        START_SECONDS,
        f"the Docker engine did not start; see {log.name}",
    )
    say(f"started our own Docker engine (DOCKER_HOST={engine.host})")
    return engine


def _our_pid() -> int | None:
    """Return the process id of our engine, after making sure that it still is our engine."""
    try:
        pid = int(PID_FILE.read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if f"--pidfile={PID_FILE}".encode() in command else None


def _wait(condition: Callable[[], bool], seconds: float, otherwise: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(otherwise)
        time.sleep(0.2)
