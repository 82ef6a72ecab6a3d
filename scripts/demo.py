"""
Show one toolserver on this machine, driven as the gateway drives it.

Its commands are harmless, because nothing isolates a plain process; in a pod
the same binary is PID 1 of a sandbox.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lab.images import build_toolserver
from lab.places import scratch
from lab.talk import LabError, complain, step
from rollcage.wire.tokens import Scope, Signer

if TYPE_CHECKING:
    from collections.abc import Iterator

SANDBOX = "demo-sandbox"
READY_SECONDS = 10
WIDTH = 150


class Caller:
    """Speaks to the toolserver in the name of rollouts."""

    def __init__(self, port: int, signer: Signer) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._signer = signer

    def call(self, rollout: str, call_id: str, tool: str, **arguments: Any) -> tuple[int, dict[str, Any]]:
        """Make one call and return the status and the answer."""
        now, lifetime = datetime.now(UTC), timedelta(minutes=5)
        body = json.dumps({"call_id": call_id, "tool": tool, "arguments": arguments}).encode()
        request = urllib.request.Request(f"{self._url}/v1/calls", body)
        request.add_header(
            "Authorization",
            self._signer.authorization(sandbox=SANDBOX, rollout=rollout, scope=Scope.ACT, now=now, lifetime=lifetime),
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, json.load(refusal)

    def becomes_ready(self) -> bool:
        """Tell whether the toolserver serves within a reasonable time."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), urllib.request.urlopen(f"{self._url}/readyz", timeout=5):
                return True
            time.sleep(0.01)
        return False


@contextmanager
def toolserver() -> Iterator[Caller]:
    """Build and start a toolserver, and stop it afterwards."""
    signer = Signer("demo", Ed25519PrivateKey.generate())
    with scratch() as tmp:
        binary, workdir = tmp / "toolserver", tmp / "workspace"
        workdir.mkdir()
        with step("building the toolserver"):
            build_toolserver(binary)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            env = {
                "PATH": os.environ["PATH"],
                "ROLLCAGE_SANDBOX": SANDBOX,
                "ROLLCAGE_KEYS": json.dumps({signer.key_id: signer.public_key()}),
                "ROLLCAGE_LISTEN": f"fd:{listener.fileno()}",
                "ROLLCAGE_CONFIG": json.dumps({"workdir": str(workdir)}),
            }
            with (tmp / "log").open("w") as log:
                process = subprocess.Popen([binary, "serve"], env=env, pass_fds=[listener.fileno()], stderr=log)
        try:
            caller = Caller(port, signer)
            if not caller.becomes_ready():
                raise LabError(f"the toolserver did not become ready:\n{(tmp / 'log').read_text()}")
            yield caller
        finally:
            process.terminate()
            process.wait()


def show(caller: Caller) -> dict[str, int]:
    """Play a rollout that behaves, one that does not, and a trainer that retries."""
    count = "echo run >> log; wc -l < log"
    endless = "setsid sleep 1000 & sleep 1000"
    scenes: list[tuple[str, int, str, str, str, dict[str, Any]]] = [
        ("a command runs", 200, "rollout-a", "call-1", "shell", {"command": count}),
        ("its retry gets the first answer: once", 200, "rollout-a", "call-1", "shell", {"command": count}),
        ("the same id with other arguments is refused", 409, "rollout-a", "call-1", "shell", {"command": "date"}),
        ("another rollout cannot use this sandbox", 409, "rollout-b", "call-1", "shell", {"command": "id"}),
        ("bad arguments are a text the model can read", 200, "rollout-a", "call-2", "shell", {"cmd": "ls"}),
        ("what never ends is ended", 200, "rollout-a", "call-3", "shell", {"command": endless, "timeout_ms": 300}),
        ("a flood is cut, and says so", 200, "rollout-a", "call-4", "shell", {"command": "yes | head -c 9000000"}),
        ("the log shows one execution", 200, "rollout-a", "call-5", "read_file", {"path": "log"}),
    ]
    unexpected = 0
    for claim, expected, rollout, call_id, tool, arguments in scenes:
        status, answer = caller.call(rollout, call_id, tool, **arguments)
        unexpected += status != expected
        text = answer.get("output") or f"{answer.get('code')}: {answer.get('message')}"
        shown = text.strip().replace("\n", " | ")
        if answer.get("facts", {}).get("truncated"):
            shown = f"{answer['facts']['output_bytes']} bytes, cut to {len(text)}: {shown}"
        print(f"\n{claim}\n  {rollout} {call_id} {tool} {json.dumps(arguments)}")
        print(f"  -> {status} {answer.get('class', '')} {shown if len(shown) <= WIDTH else shown[:WIDTH] + ' …'}")
    return {"calls": len(scenes), "unexpected": unexpected}


def main() -> int:
    """Run the demonstration; 0 when everything went as it says."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON on the last line")
    options = parser.parse_args()
    try:
        with toolserver() as caller:
            figures = show(caller)
    except LabError as error:
        return complain(error)
    print("\nThis was the toolserver alone. See the status section of the README for the rest.")
    if options.json:
        print(json.dumps({"figures": figures}))
    return 1 if figures["unexpected"] else 0


if __name__ == "__main__":
    sys.exit(main())
