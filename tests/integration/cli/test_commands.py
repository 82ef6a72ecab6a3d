"""The commands against a real gateway: what people see, what programs get, how they end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rollcage.client.errors import Masked
from rollcage.core.ids import RolloutId
from rollcage.store.records import Subject, Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from rollcage.client import Client
    from support.commands import Command
    from support.stage import Stage


async def test_a_rollout_is_found_read_and_judged(rollcage: Command, client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", run="run-1", rollout="r1") as rollout:
        rollout.shell("echo hi; exit 3")
        rollout.shell("seq 100")
        assert "running" in rollcage("rollouts").out

    listed = rollcage("rollouts", "--run", "run-1")
    assert listed.code == 0
    assert {"r1", "trainable", "finished"} <= set(listed.out.split())
    assert [one["rollout"] for one in rollcage("rollouts", "--json").json()] == ["r1"]
    assert rollcage("rollouts", "--label", "masked").out == "no rollouts\n"

    shown = rollcage("trajectory", "r1").out
    assert "│ hi\n   │ [exit code 3]" in shown
    assert "more lines, see --full" in shown
    assert "│ 100\n" in rollcage("trajectory", "r1", "--full").out
    assert [step["outcome"] for step in rollcage("trajectory", "r1", "--json").json()] == ["failed", "ok"]

    assert "trainable" in rollcage("verdict", "r1").out
    assert rollcage("verdict", "r1", "--json").json()["verdict"]["word"] == "trainable"


async def test_a_masked_rollout_shows_its_evidence(rollcage: Command, client: Client, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    client.rollout("small", rollout="r1").shell("true")
    server.process.kill()
    server.process.wait()
    with pytest.raises(Masked) as raised:
        client.rollout("small", rollout="r1").shell("true")
    shown = rollcage("verdict", "r1").out
    assert "evidence" in shown
    assert not [line for line in shown.splitlines() if line != line.rstrip()]
    assert {"masked", raised.value.cause} <= set(shown.split())
    assert [one["rollout"] for one in rollcage("rollouts", "--label", "masked", "--json").json()] == ["r1"]


async def test_where_there_is_no_grader_there_is_no_zero(rollcage: Command, client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    client.rollout("small", rollout="r1").shell("true")
    said = rollcage("grade", "r1", "--text", "42")
    assert (said.code, said.out) == (4, "")
    assert said.err.startswith("rollcage: no_grader: ")


async def test_what_a_model_prints_cannot_drive_the_terminal(rollcage: Command, client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", rollout="r1") as rollout:
        rollout.shell(r"printf '\033[2J\033]0;owned\007[bold]x[/bold]\342\200\256'")
    shown = rollcage("trajectory", "r1", "--full").out
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "[bold]x[/bold]" in shown


async def test_environments_and_tools_are_shown_to_people_and_programs(rollcage: Command) -> None:
    assert "small" in rollcage("environments").out
    (told,) = rollcage("environments", "--json").json()
    assert (told["name"], told["pool"]["claimed"]) == ("small", 0)
    assert "command [timeout_ms]" in rollcage("tools", "small").out
    (job, *_) = rollcage("tools", "small", "--form", "job", "--run", "run-1", "--json").json()
    assert job["server_url"].endswith("/agent-rft/runs/run-1/environments/small/tools")


async def test_a_healthy_run_ends_with_0_and_a_report(
    rollcage: Command, client: Client, stage: Stage, tmp_path: Path
) -> None:
    for number in range(3):
        await stage.sandbox(f"sbx-{number}")
        with client.rollout("small", run="run-1", rollout=f"r{number}") as rollout:
            rollout.shell("echo same")
            rollout.shell("echo same")
    assert "run-1" in rollcage("run", "list").out
    health = rollcage("run", "health", "run-1", "--json")
    assert (health.code, health.json()["advice"]) == (0, "proceed")
    target = tmp_path / "report.html"
    written = rollcage("run", "report", "run-1", "--output", str(target), "--trajectories", "2", "--json")
    assert written.json() == {"report": str(target)}
    page = target.read_text()
    assert "Run run-1" in page
    assert "from 2 of 3 rollouts" in page


async def test_a_run_that_lost_too_much_ends_with_1(rollcage: Command, stage: Stage) -> None:
    for number in range(20):
        subject = Subject.of(RolloutId("ours", f"r{number}"), run="run-1", environment="small")
        await stage.store.rollouts.end(subject, Verdict("masked", by="controller", cause="node_lost"))
    said = rollcage("run", "health", "run-1")
    assert said.code == 1
    assert {"skip", "too_many_masked", "node_lost"} <= set(said.out.split())


async def test_sandboxes_are_reserved(rollcage: Command, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    said = rollcage("reserve", "run-1", "small", "1", "--id", "step-1", "--json")
    assert (said.code, said.json()["set_aside"]) == (0, 1)
    refused = rollcage("reserve", "run-1", "small", "9999")
    assert refused.code == 3
    assert refused.err.startswith("rollcage: over_quota: ")
    assert refused.err.count("\n") == 1


async def test_refusals_are_one_line_with_a_hint(rollcage: Command) -> None:
    unknown = rollcage("verdict", "nobody")
    assert (unknown.code, unknown.out, unknown.err.count("\n")) == (3, "", 1)
    assert "`rollcage rollouts` lists them" in unknown.err
    stranger = rollcage("rollouts", "--token", "x" * 40)
    assert stranger.code == 3
    assert "ROLLCAGE_TOKEN" in stranger.err
    away = rollcage("rollouts", "--url", "http://127.0.0.1:9")
    assert away.code == 4
    assert "did not answer" in away.err


async def test_doctor_finds_a_service_well_and_a_wrong_token(rollcage: Command, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    levels = {one["check"]: one["level"] for one in rollcage("doctor", "--json").json()}
    assert {levels[check] for check in ("reachable", "ready", "clock", "token", "environments")} == {"ok"}
    # Nobody plays controller here, and doctor notices.
    assert levels["controller"] == "broken"
    stranger = rollcage("doctor", "--token", "x" * 40, "--json")
    assert stranger.code == 1
    assert ("token", "broken") in {(one["check"], one["level"]) for one in stranger.json()}
    away = rollcage("doctor", "--url", "http://127.0.0.1:9")
    assert (away.code, "✗ reachable" in away.out) == (1, True)


async def test_a_long_line_is_shown_in_part_and_whole_if_wanted(
    rollcage: Command, client: Client, stage: Stage
) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", rollout="r1") as rollout:
        rollout.shell("printf %0700d 0")
    assert "… 200 more characters, see --full" in rollcage("trajectory", "r1").out
    assert "0" * 700 in rollcage("trajectory", "r1", "--full").out


async def test_a_page_that_cannot_be_written_is_refused_before_anything_is_done(rollcage: Command) -> None:
    for command in (["burst", "small", "--report"], ["run", "report", "run-1", "--output"]):
        said = rollcage(*command, "/nowhere/page.html")
        assert (said.code, "cannot be written" in said.err) == (2, True)
    assert rollcage("rollouts").out == "no rollouts\n"


async def test_a_path_behind_the_address_is_one_line_with_a_hint(rollcage: Command, url: str) -> None:
    for path in ("/console", "/v1"):
        said = rollcage("rollouts", "--url", url + path)
        assert (said.code, said.err.count("\n"), "is --url the address" in said.err) == (3, 1, True)


async def test_an_item_that_is_no_json_is_a_usage_error(rollcage: Command, tmp_path: Path) -> None:
    item = tmp_path / "item.json"
    item.write_text(json.dumps([1]))
    assert rollcage("grade", "r1", "--item", str(item)).code == 2
