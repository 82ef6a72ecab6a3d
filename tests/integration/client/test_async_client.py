"""The client with an event loop, against a real gateway."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from rollcage.client import AsyncClient
from rollcage.client.errors import FileRefused, RolloutEnded
from support.gateways import TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage


async def test_a_rollout_left_normally_is_finished(url: str, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    async with AsyncClient(url, TOKEN) as client:
        async with client.rollout("small", run="run-1", rollout="r1") as rollout:
            assert (await rollout.shell("echo hi")).output == "hi\n"
            async with rollout.session() as session:
                await session.run("cd /")
                assert (await session.run("pwd")).output == "/\n"
        assert rollout.end is not None
        assert rollout.end.verdict is not None
        assert rollout.end.verdict.word == "trainable"
        with pytest.raises(RolloutEnded):
            await rollout.shell("true")
        tools = [step.tool async for step in rollout.trajectory()]
        assert tools == ["shell", "session_create", "session_run", "session_run", "session_close"]


async def test_a_cancelled_rollout_is_abandoned(url: str, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    async with AsyncClient(url, TOKEN) as client:

        async def act() -> None:
            async with client.rollout("small", rollout="r1") as rollout:
                await rollout.shell("true")
                began.set()
                await rollout.shell("sleep 100")

        began = asyncio.Event()
        task = asyncio.create_task(act())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = (await client.verdict("r1")).verdict
        assert found is not None
        assert found.word == "abandoned"


async def test_parallel_calls_of_one_rollout_all_run(url: str, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    async with AsyncClient(url, TOKEN) as client, client.rollout("small", rollout="r1") as rollout:
        answers = await asyncio.gather(*(rollout.shell(f"echo {number}") for number in range(8)))
    assert [answer.output for answer in answers] == [f"{number}\n" for number in range(8)]


async def test_files_and_directories_go_in_and_come_out_whole(url: str, stage: Stage, tmp_path: Path) -> None:
    await stage.sandbox("sbx-1")
    content = os.urandom(1_000_000)
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "file").write_bytes(content)
    async with AsyncClient(url, TOKEN) as client, client.rollout("small", rollout="r1") as rollout:
        await rollout.shell("true")
        assert (await rollout.upload("disk", ours / "file")).bytes == len(content)
        assert await rollout.download("disk") == content
        assert (await rollout.upload_tree("tree", ours)).bytes == len(content)
        await rollout.download_tree("tree", tmp_path / "theirs")
        with pytest.raises(FileRefused):
            await rollout.download_to("missing", tmp_path / "missing")
    assert (tmp_path / "theirs/file").read_bytes() == content
