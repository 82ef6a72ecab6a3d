"""A gateway as a process of its own, and real signals."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.gateway_process import started
from support.gateways import BEARER
from support.waiting import until

if TYPE_CHECKING:
    from rollcage.store.server import Server
    from support.gateway_process import Running
    from support.stage import Stage

TOOLS = "/agent-rft/runs/r/environments/small/tools"


def ask(gateway: Running, method: str, target: str, body: object = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request(method, target, json.dumps(body) if body else None, BEARER)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def call(gateway: Running, command: str, call_id: str) -> tuple[int, bytes]:
    arguments = json.dumps({"command": command})
    return ask(gateway, "POST", TOOLS, {"name": "shell", "arguments": arguments, "trace_id": "t", "call_id": call_id})


async def test_sigterm_loses_no_call(stage: Stage, server: Server) -> None:
    await stage.sandbox("sbx-1")
    go = stage.workdir("sbx-1") / "go"
    answers: list[tuple[int, bytes]] = []
    with started(server.url) as gateway:
        waiting = f"touch began; while [ ! -e {go} ]; do sleep 0.05; done; echo whole"
        caller = threading.Thread(target=lambda: answers.append(call(gateway, waiting, "c1")))
        caller.start()
        until((stage.workdir("sbx-1") / "began").exists)
        assert ask(gateway, "GET", "/readyz")[0] == 200

        os.kill(gateway.process.pid, signal.SIGTERM)
        until(lambda: ask(gateway, "GET", "/readyz")[0] == 503)
        # Still served while load balancers have not noticed.
        assert call(gateway, "echo late", "c2")[0] == 200

        until(lambda: _refuses(gateway))
        assert answers == []
        go.touch()
        caller.join()
        assert gateway.process.wait(timeout=30) == -signal.SIGTERM
    status, body = answers[0]
    assert (status, json.loads(body)["output"]) == (200, "whole\n")


async def test_a_killed_gateways_calls_are_answered_by_another(stage: Stage, server: Server) -> None:
    await stage.sandbox("sbx-1")
    command = "echo x >> note; touch began; sleep 1; cat note"
    with started(server.url) as first, started(server.url) as second:
        lost = threading.Thread(target=lambda: _hung_up(first, command))
        lost.start()
        until((stage.workdir("sbx-1") / "began").exists)
        first.process.kill()
        lost.join()
        status, body = call(second, command, "c1")
    assert (status, json.loads(body)["output"]) == (200, "x\n")


def _hung_up(gateway: Running, command: str) -> None:
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        call(gateway, command, "c1")


def _refuses(gateway: Running) -> bool:
    try:
        ask(gateway, "GET", "/healthz")
    except (ConnectionRefusedError, ConnectionResetError):
        # Reset, if it came between the last look at the port and its closing.
        return True
    return False


def test_a_gateway_that_is_told_to_go_while_it_starts_goes() -> None:
    """As a container's first process it would ignore what it has no handler for, and it imports for seconds."""
    with subprocess.Popen([sys.executable, "-m", "rollcage.wiring", "gateway"], stderr=subprocess.DEVNULL) as starting:

        def handles_it() -> bool:
            status = Path(f"/proc/{starting.pid}/status").read_text()
            caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
            return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

        until(handles_it)
        starting.send_signal(signal.SIGTERM)

        assert starting.wait(timeout=30) == 128 + signal.SIGTERM
