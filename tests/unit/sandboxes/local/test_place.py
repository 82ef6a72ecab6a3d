"""The directory of a service: private, complete, and gone afterwards."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollcage.sandboxes.local.place import BadPlace, place

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def base() -> Iterator[Path]:
    """A directory with a short path that every user can pass through."""
    with tempfile.TemporaryDirectory(prefix="rcp-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    made = tmp_path / "toolserver"
    made.write_text("#!/bin/sh\n")
    return made


def test_sockets_are_out_of_everyone_elses_reach(base: Path, program: Path) -> None:
    with place(program, parent=base) as where:
        assert where.socket("key").parent.stat().st_mode & 0o777 == 0o700


def test_the_toolserver_is_a_copy_that_nobody_can_change(base: Path, program: Path) -> None:
    with place(program, parent=base) as where:
        program.write_text("changed")

        assert where.toolserver.read_text() == "#!/bin/sh\n"
        assert where.toolserver.stat().st_mode & 0o777 == 0o555


def test_nothing_is_left_afterwards(base: Path, program: Path) -> None:
    with place(program, parent=base) as where:
        where.prepare("key", None)
        closed = where.work("key") / "workspace" / "closed"
        (closed / "deep").mkdir(parents=True)
        closed.chmod(0)

    assert list(base.iterdir()) == []


def test_what_one_sandbox_has_is_removed_alone(base: Path, program: Path) -> None:
    with place(program, parent=base) as where:
        for key in ("a", "b"):
            where.prepare(key, None)
        where.clear("a")

        assert not where.work("a").exists()
        assert where.work("b").exists()


def test_a_directory_whose_service_lives_is_left_alone(base: Path, program: Path) -> None:
    with place(program, parent=base) as first, place(program, parent=base):
        assert first.toolserver.exists()


def test_a_directory_that_a_crash_left_is_removed(base: Path, program: Path) -> None:
    left = base / "rollcage-local-crashed"
    left.mkdir()
    (left / "lock").touch()
    strangers = base / "rollcage-local-unfinished"
    strangers.mkdir()
    with place(program, parent=base):
        assert not left.exists()
        # Without a lock it may be one that is just being made.
        assert strangers.exists()


def test_without_a_toolserver_nothing_is_made(base: Path) -> None:
    with pytest.raises(BadPlace, match="no toolserver"), place(base / "none", parent=base):
        pass

    assert list(base.iterdir()) == []


def test_a_path_too_long_for_sockets_is_refused(base: Path, program: Path) -> None:
    deep = base / ("x" * 90)
    deep.mkdir()
    with pytest.raises(BadPlace, match="too long"), place(program, parent=deep):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives sandboxes user ids of their own")
def test_root_needs_a_directory_that_others_can_pass_through(base: Path, program: Path) -> None:
    closed = base / "closed"
    closed.mkdir(0o700)
    with pytest.raises(BadPlace, match="cannot pass"), place(program, parent=closed):
        pass
