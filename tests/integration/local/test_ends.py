"""Nothing of a sandbox is left, however it or its service ended."""

# A look at a file holds nobody up: the loop has nothing else to do.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from rollcage.core.endings import EndCause
from rollcage.sandboxes.local import source as local_source_module
from rollcage.sandboxes.local.recipe import recipe
from rollcage.sandboxes.local.source import LocalSettings, local_source
from rollcage.sandboxes.local.tiers import Detection, NoIsolation, Tier
from rollcage.sandboxes.source import Phase, Seen
from support.local_sandboxes import LocalSandbox, ended, environment, opened, started
from support.local_toolserver import alive
from support.toolserver import KEYS, SECONDS
from support.waiting import until

ROOT = Path(__file__).parents[3]
PATHS = os.pathsep.join([str(ROOT / "service"), str(ROOT / "tests"), *filter(None, sys.path)])
# Stays alive in its session, and in a process group of nobody's.
LINGER = "setsid nohup sleep {word} > /dev/null 2>&1 &"


def _word() -> str:
    return f"{100_000 + os.getpid()}.{os.urandom(4).hex()}".translate(str.maketrans("abcdef", "123456"))


def _linger(sandbox: LocalSandbox, word: str) -> None:
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command=LINGER.format(word=word))
    until(lambda: len(alive(word)) == 1)


async def test_deleting_kills_the_whole_tree(tier: Tier, toolserver: Path) -> None:
    word = _word()
    async with opened(tier, toolserver) as source:
        sandbox = await started(source, "a")
        await asyncio.to_thread(_linger, sandbox, word)

        await source.delete("a", uid=sandbox.shown.uid)

        assert alive(word) == []


async def test_closing_leaves_no_process_and_no_file(tier: Tier, toolserver: Path, short: Path) -> None:
    word = _word()
    async with opened(tier, toolserver, directory=short) as source:
        await asyncio.to_thread(_linger, await started(source, "a"), word)
        await source.create("b", environment())
        await asyncio.sleep(0)
        (directory,) = short.iterdir()

    assert alive(word) == []
    assert list(short.iterdir()) == []
    assert _cgroups(directory.name) == []


async def test_deleting_at_any_moment_of_a_start_leaves_nothing(tier: Tier, toolserver: Path, short: Path) -> None:
    before = _children()
    async with opened(tier, toolserver, directory=short) as source, source.observe() as changes:
        for turn in range(20):
            name = f"a{turn}"
            await source.create(name, environment())
            # From before its launcher is there until it nearly runs.
            await asyncio.sleep(turn * 0.005)
            async for change in changes:
                if isinstance(change, Seen) and change.sandbox.name == name:
                    await source.delete(name, uid=change.sandbox.uid)
                    break

    assert _children() == before
    assert list(short.iterdir()) == []


async def test_a_block_that_fails_leaves_nothing_and_tells_its_own_error(tier: Tier, toolserver: Path) -> None:
    word = _word()

    async def fail() -> None:
        async with opened(tier, toolserver) as source:
            await asyncio.to_thread(_linger, await started(source, "a"), word)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()

    assert alive(word) == []


async def test_a_toolserver_that_is_killed_takes_its_tree_along(landlock: Tier, toolserver: Path) -> None:
    word = _word()
    async with opened(landlock, toolserver) as source:
        sandbox = await started(source, "a")
        await asyncio.to_thread(_linger, sandbox, word)
        with suppress(OSError, HTTPException):
            await sandbox.run("[ $(cat /proc/$PPID/comm) = toolserver ] && kill -9 $PPID")
        shown = await ended(source, "a")

        assert shown.ending
        assert (shown.ending.cause, shown.ending.exit_code) == (EndCause.EXITED, 137)
        assert shown.ending.details["signal"] == "SIGKILL"
        assert alive(word) == []


async def test_a_sandbox_whose_time_is_over_is_ended(
    tier: Tier, toolserver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def brief(*args: Any, **more: Any) -> object:
        return replace(recipe(*args, **more), lifetime=1.0)

    monkeypatch.setattr(local_source_module, "recipe", brief)
    async with opened(tier, toolserver) as source:
        await source.create("a", environment())
        shown = await ended(source, "a")

    assert shown.ending
    assert shown.ending.cause is EndCause.DEADLINE


async def test_a_sandbox_that_cannot_start_says_why(own_root: Tier, toolserver: Path) -> None:
    async with opened(own_root, toolserver) as source:
        await source.create("a", environment(workspace={"path": "/usr/share/nowhere"}))
        shown = await ended(source, "a")

    assert shown.ending
    assert shown.ending.cause is EndCause.START_FAILED
    assert "nowhere" in shown.ending.message


async def test_one_whose_set_up_fails_can_be_asked_why(tier: Tier, toolserver: Path) -> None:
    async with opened(tier, toolserver) as source, source.observe() as changes:
        await source.create("a", environment(setup={"commands": ["echo broken; exit 3"]}))
        async for change in changes:
            if isinstance(change, Seen) and change.sandbox.phase is Phase.RUNNING:
                sandbox = LocalSandbox(change.sandbox)
                break
        await asyncio.to_thread(until, lambda: sandbox.state().setup.state == "failed")

        assert "broken" in sandbox.state().setup.output


SERVICE = """
import asyncio, os, sys
from pathlib import Path
from rollcage.sandboxes.local.tiers import Tier
from support.local_sandboxes import opened, started

async def main():
    tier, toolserver, directory, word = Tier(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), os.environ["WORD"]
    async with opened(tier, toolserver, directory=directory) as source:
        for name in ("a", "b"):
            sandbox = await started(source, name)
            sandbox.call("session_create", session="s")
            sandbox.call("session_run", session="s", command=f"setsid nohup sleep {word} > /dev/null 2>&1 &")
        print("ready", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_service_that_crashes_leaves_no_process_and_the_next_one_removes_its_files(
    tier: Tier, toolserver: Path, short: Path
) -> None:
    word = _word()
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVICE, tier, str(toolserver), str(short)),
        env={**os.environ, "PYTHONPATH": PATHS, "WORD": word},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert service.stdout
        assert await service.stdout.readline() == b"ready\n"
        await asyncio.to_thread(until, lambda: len(alive(word)) == 2)
    finally:
        service.kill()
        await service.wait()

    await asyncio.to_thread(until, lambda: alive(word) == [])
    (left,) = short.iterdir()
    async with opened(tier, toolserver, directory=short):
        assert not left.exists()
        assert _cgroups(left.name) == []
    assert list(short.iterdir()) == []


BEGINNER = """
import asyncio, sys
from pathlib import Path
from rollcage.sandboxes.local.tiers import Tier
from support.local_sandboxes import environment, opened

async def main():
    async with opened(Tier(sys.argv[1]), Path(sys.argv[2]), directory=Path(sys.argv[3])) as source:
        for name in ("a", "b", "c", "d"):
            await source.create(name, environment(setup={"commands": ["sleep 3600"]}))
        print("begun", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
# Inherits whatever a killed service leaves, and returns when all of it is over.
HEIR = """
import ctypes, os, subprocess, sys, time
PR_SET_CHILD_SUBREAPER = 36
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
service = subprocess.Popen([sys.executable, "-c", *sys.argv[2:]], stdout=subprocess.PIPE)
service.stdout.readline()
time.sleep(float(sys.argv[1]))
service.kill()
try:
    while True:
        os.wait()
except ChildProcessError:
    os._exit(0)
"""


async def test_a_service_that_is_killed_at_any_moment_of_a_start_leaves_no_process(
    tier: Tier, toolserver: Path, short: Path
) -> None:
    for moment in range(8):
        heir = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", HEIR, str(moment * 0.03), BEGINNER, tier, str(toolserver), str(short)),
            env={**os.environ, "PYTHONPATH": PATHS},
        )
        async with asyncio.timeout(SECONDS):
            assert await heir.wait() == 0


async def test_two_services_leave_each_other_alone(tier: Tier, toolserver: Path, short: Path) -> None:
    async with opened(tier, toolserver, directory=short) as first:
        sandbox = await started(first, "a")
        async with opened(tier, toolserver, directory=short) as second:
            await started(second, "a")

        assert await sandbox.run("echo still here") == "still here\n"


async def test_where_nothing_isolates_nothing_starts(toolserver: Path) -> None:
    refused = {Tier.BUBBLEWRAP: "not installed", Tier.NAMESPACES: "forbidden", Tier.LANDLOCK: "too old"}
    settings = LocalSettings(toolserver, KEYS, detection=Detection(Tier.NONE, refused))

    with pytest.raises(NoIsolation) as refusal:
        async with local_source(settings):
            pass

    text = str(refusal.value)
    assert all(reason in text for reason in refused.values())
    assert "apt-get install bubblewrap" in text


async def test_going_without_isolation_is_said_at_every_start(
    toolserver: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(Tier.NONE, toolserver, unsafe_no_isolation=True) as source:
        for name in ("a", "b"):
            # Nothing but a harmless command: there is no cage around it.
            assert await (await started(source, name)).run("echo here") == "here\n"

    warnings = [record for record in caplog.records if record.message == "sandbox_not_isolated"]
    assert [json.dumps(vars(record).get("sandbox")) for record in warnings] == ['"a"', '"b"']


def _cgroups(name: str) -> list[Path]:
    """Return what is left of a service's cgroups; other services' come and go meanwhile, which os.walk bears."""
    return [Path(found) for found, _, _ in os.walk("/sys/fs/cgroup") if Path(found).name == name]


def _children() -> set[str]:
    """Return the processes that this one must still bury, dead or alive."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}
