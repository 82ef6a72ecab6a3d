"""
What may run side by side when there are several processes, and what may not.

Files share nothing and go to any process, but for a few on the cluster: those
that take nodes away, and those with something that lives from test to test and
would miss them. A test that takes away what everybody needs, or the definition
of environments (``alone``), waits until nobody else is on the cluster.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ON_THE_CLUSTER: Final = ("tests/cluster/", "tests/contract/sandboxes/test_kubernetes.py")
_TOGETHER: Final = (
    "tests/cluster/chart/",
    "tests/cluster/test_controller.py",
    "tests/cluster/test_ground.py",
    "tests/cluster/test_plain_manifests.py",
)


def scope(test: str) -> str:
    """Return what has to run in one process with this test."""
    return "together" if test.startswith(_TOGETHER) else test.split("::", 1)[0]


def is_on_the_cluster(test: str) -> bool:
    """Tell whether a test uses the cluster."""
    return test.startswith(_ON_THE_CLUSTER)


def turn(test: str) -> int:
    """Say how early a test begins: what takes longest comes first, so that it does not end last."""
    return 0 if scope(test) == "together" else 1 if is_on_the_cluster(test) else 2


@contextmanager
def on_the_cluster(directory: Path, *, alone: bool) -> Iterator[None]:
    """Be one of those who are on the cluster, or the only one; the directory is the same for all processes."""
    with (directory / "cluster.door").open("w") as door, (directory / "cluster.room").open("w") as room:
        # Whoever wants to be alone keeps the door shut while others leave.
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
