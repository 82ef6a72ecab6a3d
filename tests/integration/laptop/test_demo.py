"""The demonstration: its figures are counted, and would show it if the service failed."""

from __future__ import annotations

import io
import json
import secrets
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from rich.console import Console

import demo
from rollcage.cli.bursts.driving import Target, drive
from rollcage.cli.bursts.scripts import Means, Timing, behaving, struck
from rollcage.cli.bursts.view import Lines
from rollcage.core.environment_file import load_environments
from rollcage.sandboxes.local import source
from rollcage.sandboxes.local.tiers import Detection, Tier
from rollcage.wiring.laptop import LaptopSettings, laptop
from rollcage.wiring.toolserver import find_toolserver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    import pytest

    from rollcage.wiring.laptop import Laptop

ROLLOUTS = 18


@asynccontextmanager
async def served() -> AsyncIterator[Laptop]:
    environments = {one.name: one for one in load_environments(demo.ENVIRONMENT)}
    token = secrets.token_hex(32)
    async with laptop(LaptopSettings(environments, find_toolserver(), token, unsafe_no_isolation=True, port=0)) as one:
        yield one


def test_it_ends_by_itself_with_figures_that_agree(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    command = [sys.executable, demo.__file__, "--json", "--rollouts", str(ROLLOUTS), "--report", str(report)]

    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)

    assert ran.returncode == 0, ran.stderr
    figures = json.loads(ran.stdout.splitlines()[-1])["figures"]
    assert figures["rollouts"] == figures["distinct_sandboxes"] == ROLLOUTS
    assert figures["masked"] == figures["masked_expected"] == 6
    assert figures["spoiled"] == figures["spoiled_trained"] > 4
    assert figures["graded"] > figures["spoiled"]
    assert figures["trained"] + figures["masked"] == ROLLOUTS
    assert (figures["false_zeros"], figures["false_masks"], figures["wrong_outputs"]) == (0, 0, 0)
    assert report.stat().st_size
    assert f"masked: {figures['masked']};" in ran.stderr


async def test_a_fault_that_the_service_does_not_notice_is_counted_as_a_false_zero() -> None:
    async def pretend(sandbox: Mapping[str, str]) -> None:
        """Let the driver believe that it took the sandbox away."""
        assert sandbox["name"]

    async with served() as running:
        target = Target(running.url, running.token, "demo", "lies")
        scripts = (behaving(), struck(Means.KILL, Timing.BETWEEN))
        strikes = {Means.KILL: pretend}
        driven = await drive(target, scripts, Lines(lambda _: None), title="lies", strikes=strikes, direct=True)

    assert driven.figures.masked_expected == driven.figures.false_zeros == 1
    assert not driven.figures.all_is_well


async def test_where_nothing_isolates_it_says_so_and_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing_works(_place: object) -> Detection:
        return Detection(Tier.NONE, {Tier.LANDLOCK: "forbidden here"})

    monkeypatch.setattr(source, "detect", nothing_works)
    written = io.StringIO()
    wishes = demo.Wishes(rollouts=ROLLOUTS, stay=False, json=False, report=tmp_path / "report.html")

    code = await demo.demonstrate(wishes, Console(file=written, width=200))

    assert code == 0, written.getvalue()
    assert "NOTHING IS ISOLATED HERE" in written.getvalue()
    assert "landlock: forbidden here" in written.getvalue()
