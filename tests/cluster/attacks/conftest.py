"""A fresh sandbox for each attack, and a neighbour on the same node that must not notice any of them."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING

import pytest

from support.sandboxes import Sandboxes, SandboxPod, assert_isolated
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.kind import Cluster
    from support.kube import Namespace

# A call every so often is enough to notice a disturbance, and disturbs nobody itself.
PAUSE = 0.2
# What a no-op takes on a machine whose two cores are busy with attacks, and then some.
PATIENCE = 20.0

_numbers = itertools.count(1)


class Neighbour:
    """Uses a sandbox all the time and keeps count."""

    def __init__(self, pod: SandboxPod) -> None:
        self.pod = pod
        self.boot = pod.state().boot_id
        self.calls = 0
        self.slowest = 0.0
        self.failure: Exception | None = None
        self._leave = threading.Event()

    def use(self) -> None:
        """Call until told to leave, or until a call fails."""
        while not self._leave.wait(PAUSE):
            began = time.monotonic()
            try:
                assert self.pod.shell("echo fine").output == "fine\n"
            except Exception as failure:  # noqa: BLE001 - whatever it is, the test shall say it
                self.failure = failure
                return
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.calls += 1

    def leave(self) -> None:
        self._leave.set()

    def assert_undisturbed(self) -> None:
        """Wait for a whole call after the attack, and look back on those during it."""
        before = self.calls
        until(lambda: self.failure is not None or self.calls > before + 1, seconds=60)
        assert self.failure is None
        assert self.slowest < PATIENCE
        assert self.pod.state().boot_id == self.boot


@pytest.fixture(scope="module")
def sandboxes(namespace: Namespace, cluster: Cluster) -> Sandboxes:
    """On the first worker: other tests take the second one away, and it may come back under another address."""
    return Sandboxes(namespace, f"{cluster.name}-worker")


@pytest.fixture(scope="module")
def neighbour(sandboxes: Sandboxes) -> Iterator[Neighbour]:
    with sandboxes.start("neighbour") as pod:
        made = Neighbour(pod)
        user = threading.Thread(target=made.use)
        user.start()
        yield made
        made.leave()
        user.join()


@pytest.fixture(autouse=True)
def undisturbed(neighbour: Neighbour) -> Iterator[None]:
    yield
    neighbour.assert_undisturbed()


@pytest.fixture
def name() -> str:
    return f"attacked-{next(_numbers)}"


@pytest.fixture
def sandbox(sandboxes: Sandboxes, name: str) -> Iterator[SandboxPod]:
    """A sandbox that may be destroyed: it was made sure that it is one."""
    with sandboxes.start(name) as pod:
        assert_isolated(pod)
        yield pod


@pytest.fixture(scope="module")
def shared(sandboxes: Sandboxes) -> Iterator[SandboxPod]:
    """One sandbox for the attacks of a module that must have no effect at all."""
    with sandboxes.start("shared") as pod:
        assert_isolated(pod)
        yield pod
