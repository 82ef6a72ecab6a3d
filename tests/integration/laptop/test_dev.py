"""The service on a laptop, started as a person starts it."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from support.dev_process import COMMAND, SECONDS, dev
from support.processes import alive, descendants
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.dev_process import Dev

ENVIRONMENT = """
apiVersion: rollcage.dev/v1alpha1
kind: Environment
metadata: {name: mine}
spec:
  image: none
  env: {COLOUR: blue}
"""


def full(running: Dev) -> bool:
    """Whether all that should be warm is, and nothing is starting."""
    pools = running.get("/v1/pools")["pools"]
    return all(pool["ready"] == pool["wanted"] for pool in pools)


def test_the_line_that_it_prints_runs_a_command_in_a_sandbox(shared: Dev) -> None:
    if not shutil.which("curl"):
        pytest.skip("no curl on the PATH")

    said = subprocess.run(["bash", "-c", shared.line("curl -s ")], capture_output=True, check=True, timeout=60)

    assert json.loads(said.stdout)["output"].startswith("hello from ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_stop_it_leaves_nothing_behind(running: Dev, place: Path, number: signal.Signals) -> None:
    until(lambda: full(running))
    below = descendants(running.process.pid)
    assert len(below) > 5, "Redis and the warm sandboxes"

    running.process.send_signal(number)

    assert running.process.wait(timeout=60) == 0, running.says()
    assert running.says().splitlines()[-1] == "stopped"
    assert not alive(below)
    assert not list(place.iterdir())


def test_a_second_signal_does_not_disturb_its_leaving(running: Dev, place: Path) -> None:
    below = descendants(running.process.pid)

    for _ in range(3):
        running.process.send_signal(signal.SIGINT)

    assert running.process.wait(timeout=60) == 0, running.says()
    assert not alive(below)
    assert not list(place.iterdir())


def test_killed_it_takes_redis_and_its_sandboxes_along(running: Dev) -> None:
    until(lambda: full(running))
    below = descendants(running.process.pid)

    running.process.kill()

    until(lambda: not alive(below))


def test_it_serves_the_environments_of_a_file(place: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(ENVIRONMENT)

    with dev(place, "--environment", str(recipe)) as running:
        served = running.get("/v1/environments")["environments"]

    assert [one["name"] for one in served] == ["mine"]


def test_a_set_up_that_fails_is_told_with_its_output(place: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"{ENVIRONMENT}  setup: {{commands: ['echo no such tool; exit 3']}}\n  pool: {{warm: 1}}\n")

    with dev(place, "--environment", str(recipe)) as running:
        until(lambda: "setup_failed" in running.says())

        assert "no such tool" in running.line("setup_failed")


def test_metrics_tell_of_pools_and_requests_alike(shared: Dev) -> None:
    url = shared.variables["ROLLCAGE_URL"]

    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        text = b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    assert 'rollcage_pool_sandboxes{environment="shell",state="wanted"} 4.0' in text, text[:2000]


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = subprocess.run(
            [*COMMAND, "--port", str(port)], capture_output=True, text=True, check=False, timeout=SECONDS
        )

    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1].startswith(f"rollcage: port_taken: cannot listen on port {port}")
    assert "Traceback" not in ran.stderr


def test_a_mistake_in_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(ENVIRONMENT.replace("env:", "envy:"))

    ran = subprocess.run(
        [*COMMAND, "--environment", str(recipe)], capture_output=True, text=True, check=False, timeout=SECONDS
    )

    assert ran.returncode == 1
    assert f"{recipe}:7" in ran.stderr
    assert "Traceback" not in ran.stderr
