"""Who shares a process, and who is alone on the cluster."""

from __future__ import annotations

import select
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from support.sharing import on_the_cluster, scope, turn

if TYPE_CHECKING:
    from pathlib import Path

ANOTHER = """
import sys
from pathlib import Path
from support.sharing import on_the_cluster
with on_the_cluster(Path(sys.argv[1]), alone=sys.argv[2] == "alone"):
    print("in", flush=True)
    sys.stdin.read()
"""


class _Another:
    """Goes onto the cluster from a process of its own."""

    def __init__(self, directory: Path, how: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ANOTHER, str(directory), how],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()
        assert self.process.returncode == 0

    def is_in(self) -> bool:
        assert self.process.stdout
        return self.process.stdout.readline() == "in\n"


def test_the_cluster_is_shared_and_whoever_is_alone_is(tmp_path: Path) -> None:
    with on_the_cluster(tmp_path, alone=False), _Another(tmp_path) as beside:
        assert beside.is_in()
    with _Another(tmp_path, "alone") as lonely:
        assert lonely.is_in()
        late = _Another(tmp_path)
        # It has said nothing so far only if it waits; give it the time to start.
        assert _silent(late)
    with late:
        assert late.is_in()


def _silent(another: _Another, seconds: float = 1.0) -> bool:
    assert another.process.stdout
    return not select.select([another.process.stdout], [], [], seconds)[0]


def test_what_shares_nothing_is_a_scope_of_its_own_and_what_shares_begins() -> None:
    files = ["tests/cluster/test_controller.py", "tests/cluster/attacks/test_pid1.py", "tests/unit/core/test_pool.py"]
    controller, attack, unit = (f"{file}::TestIt::test_it" for file in files)

    assert [scope(one) for one in (controller, attack, unit)] == ["together", *files[1:]]
    assert scope("tests/cluster/chart/test_installed.py::test_it") == scope(controller)
    assert sorted((unit, attack, controller), key=turn) == [controller, attack, unit]
