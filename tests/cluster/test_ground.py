"""The ground that everything else stands on: what a cluster made by ``scripts/cluster`` can do."""

from __future__ import annotations

import socket
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from kubernetes import client

from lab import kind
from lab.images import reference
from support.kube import RESTRICTED, Namespace, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.kind import Cluster

PORT = 8000
SERVE = ["python3", "-m", "http.server", str(PORT), "--directory", "/etc"]
# Node loss shows after the controller manager's grace period of some 40 s.
NODE_PATIENCE = 240.0


@pytest.fixture(scope="module")
def server(namespace: Namespace, cluster: Cluster, sandbox_image: str) -> Any:
    """A web server on the first worker."""
    namespace.run("server", SERVE, image=sandbox_image, nodeName=f"{cluster.name}-worker")
    pod = namespace.ready("server")

    def listens() -> bool:
        with suppress(OSError), socket.create_connection((pod.status.pod_ip, PORT), timeout=10):
            return True
        return False

    # Without a probe a pod is ready before its program listens.
    wait_for("the server to listen", listens)
    return pod


def get(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}:{PORT}/hostname", timeout=10) as answer:
        text: str = answer.read().decode().strip()
    return text


def test_a_restricted_pod_is_reachable_from_this_machine(server: Any) -> None:
    assert get(server.status.pod_ip) == "server"


def test_a_pod_reaches_a_pod_on_another_node(
    server: Any, namespace: Namespace, cluster: Cluster, sandbox_image: str
) -> None:
    url = f"http://{server.status.pod_ip}:{PORT}/hostname"
    code = f"import urllib.request as u; print(u.urlopen({url!r}, timeout=20).read().decode())"
    namespace.run("caller", ["python3", "-c", code], image=sandbox_image, nodeName=f"{cluster.name}-worker2")

    assert namespace.ended("caller").exit_code == 0
    assert namespace.core.read_namespaced_pod_log("caller", namespace.name).strip() == "server"


def test_exec_runs_a_command_in_a_pod(server: Any, namespace: Namespace) -> None:
    assert namespace.exec(server.metadata.name, "id", "-u").strip() == "1000"


def test_names_of_services_resolve(server: Any, namespace: Namespace) -> None:
    resolved = namespace.exec(server.metadata.name, "getent", "hosts", "kubernetes.default.svc.cluster.local")
    service = namespace.core.read_namespaced_service("kubernetes", "default")

    assert resolved.split()[0] == service.spec.cluster_ip


def test_a_pod_below_the_restricted_standard_is_refused(namespace: Namespace, sandbox_image: str) -> None:
    loose = {"securityContext": {**RESTRICTED, "allowPrivilegeEscalation": True}}

    with pytest.raises(client.ApiException) as refusal:
        namespace.run("loose", ["true"], image=sandbox_image, container=loose)

    assert refusal.value.status == 403
    assert "allowPrivilegeEscalation" in str(refusal.value.body)


def test_a_pod_that_exceeds_its_memory_is_reported_as_killed_for_it(namespace: Namespace, sandbox_image: str) -> None:
    limits = {"resources": {"limits": {"memory": "64Mi"}}}
    namespace.run("greedy", ["python3", "-c", "b'x' * (1 << 29)"], image=sandbox_image, container=limits)

    end = namespace.ended("greedy")

    assert (end.reason, end.exit_code) == ("OOMKilled", 137)


def test_an_image_can_be_mounted_as_a_volume(namespace: Namespace, sandbox_image: str) -> None:
    namespace.run(
        "mounted",
        ["/mnt/toolserver", "version"],
        image=sandbox_image,
        container={"volumeMounts": [{"name": "tools", "mountPath": "/mnt"}]},
        volumes=[{"name": "tools", "image": {"reference": reference("toolserver"), "pullPolicy": "Never"}}],
    )

    assert namespace.ended("mounted").exit_code == 0


def test_a_pod_runs_under_gvisor(namespace: Namespace, sandbox_image: str) -> None:
    namespace.run("caged", ["dmesg"], image=sandbox_image, runtimeClassName="gvisor")

    assert namespace.ended("caged").exit_code == 0
    assert "gVisor" in namespace.core.read_namespaced_pod_log("caged", namespace.name)


class TestAKilledWorker:
    """Last, because it takes the second worker away for a while."""

    @pytest.fixture
    def victim(self, cluster: Cluster, core: Any) -> Iterator[str]:
        name = f"{cluster.name}-worker2"
        yield name
        cluster.engine.docker("start", name)
        self.wait_until(core, name, ready=True)
        kind.route_to_pods(cluster)  # its address may be another one now

    def wait_until(self, core: Any, node: str, *, ready: bool) -> None:
        def look() -> bool:
            conditions = core.read_node(node).status.conditions
            return any(c.type == "Ready" and (c.status == "True") == ready for c in conditions)

        wait_for(f"{node} to be {'ready' if ready else 'lost'}", look, seconds=NODE_PATIENCE)

    @pytest.mark.alone
    def test_becomes_not_ready_and_comes_back(self, cluster: Cluster, core: Any, victim: str) -> None:
        cluster.engine.docker("kill", victim)
        self.wait_until(core, victim, ready=False)

        cluster.engine.docker("start", victim)
        self.wait_until(core, victim, ready=True)
