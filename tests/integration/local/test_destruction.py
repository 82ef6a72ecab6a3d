"""A sandbox that destroys everything it can reach destroys itself alone."""

# A look at a file holds nobody up: the loop has nothing else to do.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.local.guard import assert_own_root
from support.local_sandboxes import opened, started

if TYPE_CHECKING:
    from rollcage.sandboxes.local.tiers import Tier

ATTEMPTS = (
    "cat {canary}",
    "echo > {canary}",
    "rm -f {canary}",
    "mv {canary} {canary}2",
    "truncate -s0 {canary}",
    "ln {canary} link",
    "touch {canary}2",
)


async def test_removing_everything_removes_only_its_own(own_root: Tier, toolserver: Path, canary: Path) -> None:
    async with opened(own_root, toolserver) as source:
        sandbox, neighbour = await started(source, "wrecker"), await started(source, "neighbour")
        await neighbour.run("echo kept > /workspace/file")
        await sandbox.run("echo lost > /workspace/file")
        await assert_own_root(sandbox, canary)

        await sandbox.run("rm -rf / --no-preserve-root", timeout_ms=60_000)

        assert await sandbox.run("find /workspace /tmp -mindepth 1") == ""
        assert await sandbox.run("echo still here") == "still here\n"
        assert await neighbour.run("cat /workspace/file") == "kept\n"
        assert canary.read_text() == "sings"
        assert Path("/usr/bin/env").exists()


@pytest.mark.parametrize(
    "attack", ["kill -9 1", "kill -STOP 1", "kill -SEGV 1", "kill 1", "pkill -9 -f .", "kill -9 -1"]
)
async def test_killing_everything_kills_only_its_own(
    own_root: Tier, toolserver: Path, canary: Path, attack: str
) -> None:
    async with opened(own_root, toolserver) as source:
        sandbox, neighbour = await started(source, "killer"), await started(source, "neighbour")
        neighbour.call("session_create", session="s")
        neighbour.call("session_run", session="s", command="sleep 1000 & echo $! > pid")
        await assert_own_root(sandbox, canary)

        await sandbox.run(attack)

        assert await sandbox.run("echo still here") == "still here\n"
        assert await neighbour.run("kill -0 $(cat pid) && echo alive") == "alive\n"


async def test_a_file_that_everyone_may_change_is_out_of_reach(tier: Tier, toolserver: Path, canary: Path) -> None:
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "vandal")
        for attempt in ATTEMPTS:
            await sandbox.run(attempt.format(canary=canary))
            assert "sings" not in await sandbox.run(f"cat {canary} link")

        assert [path.name for path in canary.parent.iterdir()] == ["canary"]
        assert canary.read_text() == "sings"


async def test_a_process_of_the_host_is_out_of_reach(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "assassin")
        victim = await asyncio.create_subprocess_exec("sleep", "1000")
        try:
            # By its number outside; inside, so small a sandbox has none so high.
            assert victim.pid > 100
            output = await sandbox.run(f"kill -9 {victim.pid}")

            assert "No such process" in output or "not permitted" in output
            assert victim.returncode is None
        finally:
            victim.kill()
            await victim.wait()
