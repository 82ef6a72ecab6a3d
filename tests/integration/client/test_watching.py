"""Watching a call that really runs, through a gateway of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.client import AsyncClient, Client, Gap, Output
from rollcage.client.errors import Masked
from support.cut_line import Line
from support.gateways import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage


def until(go: Path) -> str:
    """Return a command that counts its runs, says one thing, and another one when it is let go on."""
    return f"echo x >> ran; echo one; while [ ! -e {go} ]; do sleep 0.02; done; echo two; cat ran"


async def test_output_is_seen_while_the_command_runs(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    go = stage.workdir("sbx-1") / "go"
    with client.rollout("small", rollout="r1") as rollout:
        rollout.shell("true")
        with rollout.watch_shell(until(go)) as watched:
            # The command waits for us: this ends only if something is seen while it runs.
            for seen in watched:
                assert isinstance(seen, Output | Gap)
                go.touch()
        assert watched.result().output == "one\ntwo\nx\n"
        assert rollout.shell(until(go), call_id=watched.call_id).replayed


async def test_a_session_can_be_watched(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    go = stage.workdir("sbx-1") / "go"
    with client.rollout("small", rollout="r1") as rollout, rollout.session() as session:
        with session.watch(until(go)) as watched:
            next(watched)
            go.touch()
        assert watched.result().output == "one\ntwo\nx\n"


async def test_whoever_stops_watching_does_not_stop_the_call(client: Client, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    go = stage.workdir("sbx-1") / "go"
    with client.rollout("small", rollout="r1") as rollout:
        with rollout.watch_shell(until(go)) as watched:
            next(watched)
        go.touch()
        assert watched.result().output == "one\ntwo\nx\n"
        assert [step.call_id for step in rollout.trajectory()] == [watched.call_id]


async def test_a_sandbox_that_is_lost_while_it_is_watched_masks_the_rollout(client: Client, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    rollout = client.rollout("small", rollout="r1")
    with rollout.watch_shell("echo one; sleep 60") as watched:
        next(watched)
        server.process.kill()
        server.process.wait()
        with pytest.raises(Masked):
            list(watched)


async def test_a_cut_stream_is_taken_up_again_and_the_command_runs_once(url: str, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    go = stage.workdir("sbx-1") / "go"
    async with (
        Line("127.0.0.1", int(url.rpartition(":")[2])).open() as line,
        AsyncClient(f"http://127.0.0.1:{line.port}", TOKEN) as client,
        client.rollout("small", rollout="r1") as rollout,
    ):
        await rollout.shell("true")
        missed, text = 0, ""
        async with rollout.watch_shell(until(go)) as watched:
            async for piece in watched:
                if isinstance(piece, Gap):
                    missed += piece.bytes
                else:
                    text += piece.text
                if not go.exists():
                    await line.cut()
                    line.mend()
                    go.touch()
        result = await watched.result()
        assert result.output == "one\ntwo\nx\n"
        # Whatever of it was seen came once.
        assert result.output.endswith(text.removeprefix("one\n"))
        assert len(text) + missed <= len(result.output)
