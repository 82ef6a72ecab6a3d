"""
A real Kubernetes for tests: pods under the restricted standard, and waiting for what becomes of them.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from kubernetes import client, config, stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "seccompProfile": {"type": "RuntimeDefault"},
}
# A loaded two-core machine starts a pod in seconds, a gVisor one in some more; this is for the worst day.
PATIENCE = 180.0
POLL = 0.25


def wait_for(what: str, look: Callable[[], T | None], *, seconds: float = PATIENCE) -> T:
    """Look until there is something to see, and return it."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"gave up after {seconds:.0f} s waiting for {what}")
        time.sleep(POLL)


@contextmanager
def connected(kubeconfig: Path) -> Iterator[Any]:
    """Lend a core API on one connection pool, and close its sockets, which the client leaves to chance."""
    with config.new_client_from_config(str(kubeconfig)) as api:  # type: ignore[no-untyped-call]
        yield client.CoreV1Api(api)
        api.rest_client.pool_manager.clear()


class Namespace:
    """One namespace of a cluster and what tests do in it."""

    def __init__(self, name: str, core: Any) -> None:
        self.name = name
        self.core = core

    def run(self, name: str, command: list[str], *, image: str, **spec: Any) -> None:
        """Create a restricted pod; *spec* goes into its spec, keys of the container into the container."""
        container = {
            "name": "main",
            "image": image,
            "imagePullPolicy": "Never",
            "command": command,
            "securityContext": RESTRICTED,
            **spec.pop("container", {}),
        }
        body = {
            "metadata": {"name": name},
            "spec": {
                "restartPolicy": "Never",
                "automountServiceAccountToken": False,
                "terminationGracePeriodSeconds": 0,
                "containers": [container],
                **spec,
            },
        }
        self.core.create_namespaced_pod(self.name, body)

    def pod(self, name: str) -> Any:
        """Read a pod."""
        return self.core.read_namespaced_pod(name, self.name)

    def ready(self, name: str) -> Any:
        """Wait until a pod is ready and return it."""

        def look() -> Any:
            pod = self.pod(name)
            conditions = {c.type: c.status for c in pod.status.conditions or []}
            return pod if conditions.get("Ready") == "True" else None

        return wait_for(f"pod {name} to be ready", look)

    def ended(self, name: str) -> Any:
        """Wait until a pod's container has ended and return how."""

        def look() -> Any:
            statuses = self.pod(name).status.container_statuses or []
            return statuses[0].state.terminated if statuses else None

        return wait_for(f"pod {name} to end", look)

    def exec(self, name: str, *command: str) -> str:
        """Run a command in a pod and return what it printed."""
        session = stream.stream(
            self.core.connect_get_namespaced_pod_exec,
            name,
            self.name,
            command=list(command),
            stdout=True,
            stderr=True,
            _preload_content=False,
        )
        try:
            session.run_forever(timeout=PATIENCE)
            printed: str = session.read_all()
        finally:
            session.sock.shutdown()  # close() does nothing once the server has closed, and leaks the socket
        return printed
