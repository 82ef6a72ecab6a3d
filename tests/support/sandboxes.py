"""
Sandboxes as they are in production: restricted pods with limits, and a driver that reaches them by address.
"""

from __future__ import annotations

import json
import socket
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kubernetes.client.exceptions import NotFoundException

from lab.images import reference
from support.kube import RESTRICTED, wait_for
from support.toolserver import KEYS, Toolserver, dialer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollcage.wire.messages import Result
    from support.kube import Namespace

PORT = 8750
BAKED = ("/opt/rollcage/toolserver", "serve")
LIMITS = {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"}
# A pool of many must be able to stand on a small machine.
REQUESTS = {"cpu": "50m", "memory": "32Mi"}
# It is ready within milliseconds of its start; a pod that runs and does not answer by then never will.
READY_SECONDS = 60.0


class SandboxPod(Toolserver):
    """A sandbox in a pod."""

    def __init__(self, namespace: Namespace, name: str, address: str) -> None:
        super().__init__(dialer(address, PORT), sandbox=name)
        self.namespace = namespace
        self.name = name
        self.address = address

    def python(self, code: str, /, **arguments: Any) -> Result:
        """Run a Python program in it."""
        return self.shell('exec python3 -c "$CODE"', env={"CODE": code}, **arguments)

    def processes(self) -> list[str]:
        """Return the command lines of all processes but PID 1 and this look at them."""
        looking = (
            "for p in /proc/[0-9]*; do [ $p = /proc/1 ] || [ $p = /proc/$$ ] || tr '\\0' ' ' < $p/cmdline; echo; done"
        )
        return [line.strip() for line in self.shell(f"{looking} 2> /dev/null").output.splitlines() if line.strip()]

    def peak_memory(self) -> int:
        """Return the most memory that PID 1 ever had resident, in bytes."""
        return int(self.shell("grep VmHWM /proc/1/status").output.split()[1]) * 1024

    def logs(self) -> list[dict[str, Any]]:
        """Return the events that it logged; a line that is not one event is an error."""
        text = self.namespace.core.read_namespaced_pod_log(self.name, self.namespace.name)
        return [json.loads(line) for line in text.splitlines()]


def toolserver_env(name: str, config: dict[str, Any]) -> list[dict[str, str]]:
    """Return the variables that make a container the sandbox of that name."""
    env = {"ROLLCAGE_SANDBOX": name, "ROLLCAGE_KEYS": KEYS, "ROLLCAGE_CONFIG": json.dumps(config)}
    return [{"name": key, "value": value} for key, value in env.items()]


@dataclass(frozen=True, slots=True)
class Sandboxes:
    """Makes sandboxes in a namespace, on one node: neighbours are those who share it."""

    namespace: Namespace
    node: str

    def pids_limit(self) -> int:
        """Return how many processes a pod may have; only the kubelet knows, the limit is above the container's."""
        answer = self.namespace.core.connect_get_node_proxy_with_path(self.node, "configz", _preload_content=False)
        limit: int = json.loads(answer.data)["kubeletconfig"]["podPidsLimit"]
        return limit

    @contextmanager
    def start(
        self,
        name: str,
        *,
        image: str = reference("sandbox"),
        command: tuple[str, ...] = BAKED,
        config: dict[str, Any] | None = None,
        workspace: dict[str, Any] | None = None,
        limits: dict[str, str] | None = None,
        security: dict[str, Any] | None = None,
        mounts: tuple[dict[str, Any], ...] = (),
        volumes: tuple[dict[str, Any], ...] = (),
        **spec: Any,
    ) -> Iterator[SandboxPod]:
        """Lend a sandbox that is ready; its pod is deleted afterwards. *workspace* is the emptyDir at /workspace."""
        container = {
            "env": toolserver_env(name, {"workdir": "/workspace", **(config or {})}),
            "resources": {"limits": LIMITS | (limits or {}), "requests": REQUESTS},
            "volumeMounts": [{"name": "workspace", "mountPath": "/workspace"}, *mounts],
            "securityContext": RESTRICTED | (security or {}),
        }
        self.namespace.run(
            name,
            list(command),
            image=image,
            container=container,
            volumes=[{"name": "workspace", "emptyDir": workspace or {"sizeLimit": "32Mi"}}, *volumes],
            nodeName=self.node,
            # Variables that name every service of the namespace are none of a sandbox's business.
            enableServiceLinks=False,
            **spec,
        )
        try:
            pod = SandboxPod(self.namespace, name, self.namespace.ready(name).status.pod_ip)
            wait_for(f"the toolserver of {name}", pod.ready, seconds=READY_SECONDS)
            yield pod
        finally:
            with suppress(NotFoundException):
                self.namespace.core.delete_namespaced_pod(name, self.namespace.name, grace_period_seconds=0)


def assert_isolated(pod: SandboxPod) -> None:
    """Make sure, before anything destructive, that commands run in the pod and nowhere else."""
    hostname = pod.shell("cat /proc/sys/kernel/hostname").output.strip()
    assert hostname == pod.name != socket.gethostname()
    assert pod.shell("cat /proc/1/comm").output.strip() == "toolserver"
    assert pod.shell("id -u").output.strip() != "0"
