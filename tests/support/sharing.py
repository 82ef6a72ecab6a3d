"""
What may run side by side when there are several processes, and what may not.

Files share nothing and go to any process. On the cluster most tests share the
definition of environments and nodes that come and go, so one process has them
all; those that only use pods of their own run beside them. A test that takes
away what everybody needs (``alone``) waits until nobody else is on the cluster.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ON_THE_CLUSTER: Final = ("tests/cluster/", "tests/contract/sandboxes/test_kubernetes.py")
# In namespaces of their own, without the definition of environments.
_KEEP_TO_THEMSELVES: Final = (
    "tests/cluster/attacks/",
    "tests/cluster/test_kubernetes_source.py",
    "tests/cluster/test_toolserver_pod.py",
    "tests/contract/sandboxes/test_kubernetes.py",
)


def scope(test: str) -> str:
    """Return what has to run in one process with this test."""
    file = test.split("::", 1)[0]
    if file.startswith(_ON_THE_CLUSTER) and not file.startswith(_KEEP_TO_THEMSELVES):
        return "cluster"
    return file


def turn(test: str) -> int:
    """Say how early a test begins: what takes longest comes first, so that it does not end last."""
    return 0 if scope(test) == "cluster" else 1 if test.startswith(_ON_THE_CLUSTER) else 2


@contextmanager
def on_the_cluster(directory: Path, *, alone: bool) -> Iterator[None]:
    """Be one of those who are on the cluster, or the only one; the directory is the same for all processes."""
    with (directory / "cluster.door").open("w") as door, (directory / "cluster.room").open("w") as room:
        # Whoever wants to be alone keeps the door shut while others leave.
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
