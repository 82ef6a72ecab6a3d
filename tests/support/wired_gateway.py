"""
A gateway as it is deployed, in a process of its own, over a stage's store and sandboxes; told by variables.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

from rollcage.gateway.tenants import token_hash
from support.gateways import BEARER, TOKEN, Reply
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from support.stage import Stage

TOOLS = "/agent-rft/runs/run-1/environments/small/tools"


@dataclass(frozen=True, slots=True)
class Wired:
    """A gateway that serves."""

    process: subprocess.Popen[bytes]
    port: int

    def ask(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] = BEARER) -> Reply:
        """Ask on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, json.dumps(body) if body is not None else None, dict(headers))
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def shell(self, command: str, call: str, *, trace: str, headers: Mapping[str, str] | None = None) -> Reply:
        """Make a call as a trainer does."""
        arguments = json.dumps({"command": command})
        body = {"name": "shell", "arguments": arguments, "trace_id": trace, "call_id": call}
        return self.ask("POST", TOOLS, body, {**BEARER, **(headers or {})})

    def metric(self, sample: str) -> float:
        """Return a figure as Prometheus would read it."""
        for line in self.ask("GET", "/metrics").body.decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        raise AssertionError(f"there is no {sample}")


@contextmanager
def wired(stage: Stage, home: Path, variables: Mapping[str, str]) -> Iterator[Wired]:
    """Lend a gateway that is ready; it is told to stop when the block is left."""
    keyring, tenants, log = home / "keyring.json", home / "tenants.yaml", home / "gateway.log"
    # The tests' own key, see ``support.toolserver``.
    keyring.write_text(json.dumps({"signs": "k1", "keys": {"k1": base64.b64encode(bytes(range(32))).decode()}}))
    tenants.write_text(json.dumps({"tenants": [{"name": "ours", "tokens": [token_hash(TOKEN)]}]}))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    told = {
        "ROLLCAGE_REDIS_URL": stage.settings.url,
        "ROLLCAGE_KEYRING": str(keyring),
        "ROLLCAGE_TENANTS": str(tenants),
        "ROLLCAGE_HOST": "127.0.0.1",
        "ROLLCAGE_PORT": str(port),
        **variables,
    }
    command = [sys.executable, "-m", "rollcage.wiring", "gateway"]
    with log.open("wb") as errors, subprocess.Popen(command, env={**os.environ, **told}, stderr=errors) as process:
        gateway = Wired(process, port)
        try:
            until(lambda: _is_ready(gateway, log), seconds=60)
            yield gateway
        finally:
            process.send_signal(signal.SIGTERM)
            until(lambda: process.poll() is not None or not _says_yes(gateway))
            process.send_signal(signal.SIGTERM)  # skips the time for load balancers
            process.wait(timeout=60)


def _is_ready(gateway: Wired, log: Path) -> bool:
    assert gateway.process.poll() is None, log.read_text()
    return _says_yes(gateway)


def _says_yes(gateway: Wired) -> bool:
    try:
        return gateway.ask("GET", "/readyz").status == 200
    except OSError:
        return False
