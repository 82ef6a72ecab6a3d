"""
A controller as a process of its own, as it is deployed: it can be killed, paused and asked to stop.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lab.images import reference
from rollcage.wire.keyring import new_keyring

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Controller:
    """A running controller."""

    process: subprocess.Popen[bytes]
    log: Path

    def events(self, name: str) -> list[dict[str, object]]:
        """Return what it has told under this name."""
        lines = self.log.read_text(errors="replace").splitlines()
        told = [json.loads(line) for line in lines if line.startswith("{")]
        return [event for event in told if event.get("event") == name]

    def kill(self) -> None:
        """End it without a warning."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        """Stop it in whatever it is doing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on as if nothing had happened."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def controller(
    directory: Path, *, redis_url: str, namespace: str, kubeconfig: Path, identity: str = "first"
) -> Iterator[Controller]:
    """Run a controller over one namespace; the keyring in *directory* is made if there is none."""
    keyring = directory / "keyring.json"
    if not keyring.exists():
        keyring.write_text(new_keyring())
    log = directory / f"controller-{identity}.log"
    told = {
        "ROLLCAGE_REDIS_URL": redis_url,
        "ROLLCAGE_KEYRING": str(keyring),
        "ROLLCAGE_SANDBOX_NAMESPACE": namespace,
        "ROLLCAGE_LEASE_NAMESPACE": namespace,
        "ROLLCAGE_TOOLSERVER_IMAGE": reference("toolserver"),
        "ROLLCAGE_KUBECONFIG": str(kubeconfig),
        "ROLLCAGE_IDENTITY": identity,
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rollcage.wiring", "controller"],
            env={**os.environ, **told},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    running = Controller(process, log)
    try:
        yield running
    finally:
        running.go_on()
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            running.kill()
