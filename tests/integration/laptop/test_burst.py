"""``rollcage burst`` against a service that somebody else started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from support.dev_process import SECONDS
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.dev_process import Dev

# Whoever starts tests in the background may have them ignore Ctrl-C, and their children with them.
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from rollcage.cli.app import main; main()"
)
COMMAND = (sys.executable, "-c", PROGRAM, "burst")


def burst(running: Dev, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *options],
        env={**os.environ, **running.variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_every_rollout_gets_a_sandbox_of_its_own_and_a_page_tells_of_it(shared: Dev, tmp_path: Path) -> None:
    report = tmp_path / "page.html"

    ran = burst(shared, "shell", "--rollouts", "8", "--calls", "2", "--json", "--report", str(report))

    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    figures = told["figures"]
    assert (figures["rollouts"], figures["distinct_sandboxes"], figures["trained"], figures["calls"]) == (8, 8, 8, 16)
    assert told["run"] in report.read_text()
    assert "done 8/8" in ran.stderr
    assert shared.get(f"/v1/runs/{told['run']}/health")["rollouts"] == 8


def test_a_tool_that_fails_is_the_models_own_and_no_trouble(shared: Dev, tmp_path: Path) -> None:
    page = str(tmp_path / "page.html")

    ran = burst(shared, "strict", "--rollouts", "2", "--arguments", '{"command": "false"}', "--report", page)

    assert ran.returncode == 0, ran.stderr
    assert "masked without a reason: 0" in ran.stdout


def test_an_environment_that_there_is_not_is_one_line_and_not_one_for_each_rollout(shared: Dev) -> None:
    ran = burst(shared, "nowhere")

    assert ran.returncode == 3
    assert ran.stderr.startswith("rollcage: environment_unknown")
    assert len(ran.stderr.splitlines()) == 1


def test_a_burst_that_is_stopped_gives_its_sandboxes_back(shared: Dev, tmp_path: Path) -> None:
    options = ["shell", "--rollouts", "3", "--run", "stopped", "--arguments", '{"command": "sleep 300"}']
    with subprocess.Popen(
        [*COMMAND, *options, "--report", str(tmp_path / "page.html")],
        env={**os.environ, **shared.variables},
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            # Once all of them have a sandbox and a call that runs.
            until(lambda: [one["calls"] for one in listed(shared)] == [1, 1, 1], seconds=SECONDS)
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=SECONDS) == 130
        finally:
            process.kill()
    assert [one["verdict"]["word"] for one in listed(shared)] == ["abandoned"] * 3


def listed(running: Dev) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.get("/v1/rollouts?run=stopped")["rollouts"]
    return found
