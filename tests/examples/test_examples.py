"""
Every example, played as its README says: a whole service on this machine, and a trainer that speaks Agent RFT.

Good, bad and hostile rollouts stand in each example's rollouts.yaml with the score that they must get.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.images import build_toolserver
from rollcage.core.environment_file import load_environments
from rollcage.wiring.laptop import LaptopSettings, laptop

if TYPE_CHECKING:
    from rollcage.wiring.laptop import Laptop

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/rollouts.yaml"))
TOKEN = "examples-0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - made up


@pytest.fixture(scope="session")
def toolserver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target


def settings(name: str, toolserver: Path) -> LaptopSettings:
    text = (EXAMPLES / name / "environment.yaml").read_text()
    environments = {one.name: one for one in load_environments(text)}
    return LaptopSettings(environments, toolserver, TOKEN, port=0, graders=(EXAMPLES / name,))


async def played(name: str, running: Laptop) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(EXAMPLES / "play.py"), name, "--url", running.url, "--json"),
        env={**os.environ, "ROLLCAGE_TOKEN": TOKEN},
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return {one["name"]: one for one in map(json.loads, out.splitlines())}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
async def test_every_rollout_gets_the_score_it_deserves(name: str, toolserver: Path) -> None:
    scripts = yaml.safe_load((EXAMPLES / name / "rollouts.yaml").read_text())
    async with laptop(settings(name, toolserver)) as running:
        found = await played(name, running)
    wrong = {one: found.get(one) for one in (script["name"] for script in scripts) if not _right(found.get(one))}
    assert not wrong, wrong
    assert len({one["score"] for one in found.values()}) > 1


@pytest.mark.timeout(900)
async def test_a_call_beyond_the_budget_is_told_to_the_model_and_a_budget_is_no_fault_of_ours(toolserver: Path) -> None:
    async with laptop(settings("finqa", toolserver)) as running:
        found = (await played("finqa", running))["bad, asks for more calls than it may"]
    assert "10 calls" in found["outputs"][-1]
    assert "alder-2023.txt" in found["outputs"][0]


def _right(one: Any) -> bool:
    return one is not None and one["score"] is not None and abs(one["score"] - one["expected"]) < 0.001


def test_the_kernels_sandbox_has_the_machine_that_the_grader_has() -> None:
    spec = yaml.safe_load((EXAMPLES / "kernel" / "environment.yaml").read_text())["spec"]
    _, _, rest = spec["setup"]["commands"][0].partition("cat > tools/machine.py <<'PY'\n")
    assert rest.partition("PY\n")[0] == (EXAMPLES / "kernel" / "machine.py").read_text()
