"""The client that waits, against a real gateway."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from rollcage.client import Client, Patience
from rollcage.client.errors import (
    CallConflict,
    EnvironmentUnknown,
    FileRefused,
    Masked,
    NotAuthorized,
    OverQuota,
    RolloutEnded,
    RolloutUnknown,
    RunUnknown,
    Unreachable,
)

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage


class Boom(Exception):
    """What a trainer's own code may raise."""


async def test_a_rollout_left_normally_is_finished(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", run="run-1", rollout="r1") as rollout:
        answer = rollout.shell("echo hi; exit 3")
        assert (answer.outcome, answer.output, answer.facts["exit_code"]) == ("failed", "hi\n[exit code 3]", 3)
        assert (rollout.state().state, rollout.verdict().verdict) == ("bound", None)
    assert rollout.end is not None
    assert rollout.end.verdict is not None
    assert (rollout.end.state, rollout.end.verdict.word, rollout.end.verdict.cause) == (
        "ended",
        "trainable",
        "finished",
    )
    with pytest.raises(RolloutEnded):
        rollout.shell("true")


async def test_a_rollout_left_by_an_exception_is_abandoned(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    rollout = client.rollout("small", rollout="r1")
    rollout.shell("true")
    with pytest.raises(Boom), rollout:
        raise Boom
    found = client.verdict("r1").verdict
    assert found is not None
    assert (found.word, found.cause) == ("abandoned", "deleted_by_trainer")


async def test_a_rollout_that_never_began_hides_no_error(client: Client) -> None:
    with pytest.raises(Boom), client.rollout("small", rollout="r1"):
        raise Boom
    with pytest.raises(RolloutUnknown):
        client.rollout_state("r1")


async def test_the_same_call_id_runs_once(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", rollout="r1") as rollout:
        first, again = (rollout.shell("echo x >> note; cat note", call_id="c1") for _ in range(2))
        assert (first.output, again.output, again.replayed) == ("x\n", "x\n", True)
        with pytest.raises(CallConflict):
            rollout.shell("true", call_id="c1")


async def test_a_masked_rollout_is_an_error_with_its_cause(client: Client, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    rollout = client.rollout("small", rollout="r1")
    rollout.shell("true")
    server.process.kill()
    server.process.wait()
    with pytest.raises(Masked) as raised, rollout:
        rollout.shell("true")
    found = client.verdict("r1")
    assert found.verdict is not None
    assert (found.verdict.word, found.verdict.cause) == ("masked", raised.value.cause)
    assert found.evidence[0]["sandbox"] == "sbx-1"


async def test_a_session_keeps_its_directory(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", rollout="r1") as rollout:
        with rollout.session(env={"WHO": "us"}) as session:
            assert session.run("mkdir there && cd there").ok
            assert session.run('echo "$WHO in $(basename $PWD)"').output == "us in there\n"
        assert session.run("true").outcome != "ok"


async def test_files_and_directories_go_in_and_come_out_whole(client: Client, stage: Stage, tmp_path: Path) -> None:
    await stage.sandbox("sbx-1")
    content = os.urandom(3_000_000)
    ours = tmp_path / "ours"
    (ours / "deep").mkdir(parents=True)
    (ours / "deep/file").write_bytes(content)
    with client.rollout("small", rollout="r1") as rollout:
        rollout.shell("true")
        assert rollout.upload("data/memory", content).bytes == len(content)
        assert rollout.upload("data/disk", ours / "deep/file").bytes == len(content)
        assert rollout.download("data/memory") == content
        rollout.download_to("data/disk", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == content
        assert rollout.upload_tree("tree", ours).bytes == len(content)
        rollout.shell("ln -s /etc/passwd tree/link")
        assert rollout.download_tree("tree", tmp_path / "theirs") >= 2
        with pytest.raises(FileRefused):
            rollout.download_to("missing", tmp_path / "missing")
    assert (tmp_path / "theirs/deep/file").read_bytes() == content
    assert not (tmp_path / "theirs/link").exists()
    assert not list(tmp_path.glob(".*"))  # noqa: ASYNC240 - nobody else waits


async def test_listings_are_read_to_their_end(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    with client.rollout("small", run="run-1", rollout="r1") as rollout:
        for number in range(5):
            rollout.shell(f"echo {number}")
    steps = list(client.trajectory("r1", page=2))
    assert [step.output for step in steps] == [f"{number}\n" for number in range(5)]
    assert [found.rollout for found in client.rollouts(run="run-1", page=1)] == ["r1"]
    (tallied,) = client.tallied("run-1")
    assert (tallied.tally.calls, tallied.tally.outcomes) == (5, {"ok": 5})


async def test_runs_reservations_environments_and_pools_are_read(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    assert [environment.name for environment in client.environments()] == ["small"]
    assert "shell" in client.environment("small").tools
    assert {tool["function"]["name"] for tool in client.tools("small")} >= {"shell", "read_file"}
    assert client.tools("small", form="job", run="run-1")[0]["server_url"].endswith(
        "/agent-rft/runs/run-1/environments/small/tools"
    )
    reserved = client.reserve("run-1", "small", 1, reservation="step-1")
    assert (reserved.count, reserved.set_aside) == (1, 1)
    with pytest.raises(OverQuota):
        client.reserve("run-1", "small", 5000)
    with client.rollout("small", run="run-1") as rollout:
        rollout.shell("true")
    assert (client.health("run-1").advice, client.runs()[0].run) == ("proceed", "run-1")
    assert [pool.environment for pool in client.pools().pools] == ["small"]
    assert client.readiness().ready
    with pytest.raises(RunUnknown):
        client.health("run-9")
    with pytest.raises(EnvironmentUnknown):
        client.environment("gone")


async def test_a_wrong_token_and_a_closed_port_are_told_apart(url: str) -> None:
    with Client(url, "wrong" * 10) as stranger, pytest.raises(NotAuthorized):
        stranger.environments()
    hasty = Patience(attempts=1)
    with Client("http://127.0.0.1:9", "t", patience=hasty) as nowhere, pytest.raises(Unreachable) as raised:
        nowhere.environments()
    assert not raised.value.sent
