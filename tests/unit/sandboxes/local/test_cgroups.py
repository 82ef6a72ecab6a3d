"""Cgroups of both versions, on directories that stand for the kernel's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.sandboxes.local.cgroups import Cgroup, NoCgroup, find
from rollcage.sandboxes.local.limits import Limits

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
LIMITS = Limits(memory=64 * MIB, workspace=16 * MIB, temporary=8 * MIB, cpus=0.5, processes=100)


def directory(path: Path, *files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name in files:
        (path / name).touch()
    return path


def test_without_a_memory_controller_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(NoCgroup, match="memory controller"):
        find("ours", mount=tmp_path, own="0::/user.slice")


def test_one_that_was_not_delegated_is_not_used(tmp_path: Path) -> None:
    directory(tmp_path, "cgroup.controllers")
    directory(tmp_path / "user.slice" / "session.scope")

    with pytest.raises(NoCgroup, match="not delegated"):
        find("ours", mount=tmp_path, own="0::/user.slice/session.scope")


def test_the_first_version_has_a_directory_for_each_controller(tmp_path: Path) -> None:
    for controller in ("memory", "pids", "cpu"):
        directory(tmp_path / controller / "here")
    found = find("ours", mount=tmp_path, own="3:cpu,cpuacct:/here\n2:pids:/here\n1:memory:/here\n0::/")

    assert found.slices["memory"] == tmp_path / "memory" / "here" / "ours"
    assert set(found.slices) == {"memory", "pids", "cpu"}
    found.remove()
    assert not (tmp_path / "memory" / "here" / "ours").exists()


def test_what_a_sandbox_is_shown_are_its_own_counters(tmp_path: Path) -> None:
    first = Cgroup({"memory": tmp_path / "m", "pids": tmp_path / "p", "cpu": tmp_path / "c"}, unified=False)
    second = Cgroup({"": tmp_path / "u"}, unified=True)

    assert first.shown == {"/sys/fs/cgroup/memory": tmp_path / "m", "/sys/fs/cgroup/cpu": tmp_path / "c"}
    assert second.shown == {"/sys/fs/cgroup": tmp_path / "u"}


@pytest.mark.parametrize(
    ("unified", "file", "text"),
    [
        pytest.param(True, "memory.events", "low 0\noom 3\noom_kill 2\n", id="second version"),
        pytest.param(False, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", id="first version"),
    ],
)
def test_kills_for_want_of_memory_are_counted(tmp_path: Path, *, unified: bool, file: str, text: str) -> None:
    (tmp_path / file).write_text(text)

    assert Cgroup({"" if unified else "memory": tmp_path}, unified=unified).oom_kills() == 2


def test_a_cgroup_that_is_gone_counts_nothing_and_is_removed_again(tmp_path: Path) -> None:
    gone = Cgroup({"": tmp_path / "gone"}, unified=True)

    assert gone.oom_kills() == 0
    assert gone.remove()
