"""
Controllers and gateways as processes of their own, as they are deployed: they can be killed, paused, asked to stop.
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

import yaml

from lab.images import reference
from rollcage.gateway.tenants import token_hash
from rollcage.wire.keyring import new_keyring

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Deployed:
    """A running part of the service."""

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
) -> Iterator[Deployed]:
    """Run a controller over one namespace."""
    told = {
        "ROLLCAGE_SANDBOX_NAMESPACE": namespace,
        "ROLLCAGE_LEASE_NAMESPACE": namespace,
        "ROLLCAGE_TOOLSERVER_IMAGE": reference("toolserver"),
        "ROLLCAGE_KUBECONFIG": str(kubeconfig),
        "ROLLCAGE_IDENTITY": identity,
    }
    with _running("controller", directory, identity, redis_url, told) as running:
        yield running


@contextmanager
def gateway(
    directory: Path, *, redis_url: str, token: str, port: int, kubeconfig: Path | None = None
) -> Iterator[Deployed]:
    """Run a gateway that lets in one tenant, called ``acme``; it should have no use for *kubeconfig*."""
    tenants = directory / "tenants.yaml"
    tenants.write_text(yaml.safe_dump({"tenants": [{"name": "acme", "tokens": [token_hash(token)]}]}))
    told = {"ROLLCAGE_TENANTS": str(tenants), "ROLLCAGE_HOST": "127.0.0.1", "ROLLCAGE_PORT": str(port)}
    told |= {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}
    with _running("gateway", directory, str(port), redis_url, told) as running:
        yield running


@contextmanager
def _running(part: str, directory: Path, identity: str, redis_url: str, told: dict[str, str]) -> Iterator[Deployed]:
    keyring = directory / "keyring.json"
    if not keyring.exists():
        keyring.write_text(new_keyring())
    told |= {"ROLLCAGE_REDIS_URL": redis_url, "ROLLCAGE_KEYRING": str(keyring)}
    log = directory / f"{part}-{identity}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rollcage.wiring", part],
            env={**os.environ, **told},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    running = Deployed(process, log)
    try:
        yield running
    finally:
        running.go_on()
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            running.kill()
