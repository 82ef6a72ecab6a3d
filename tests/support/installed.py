"""
The chart installed on the test cluster, and a trainer that calls the gateways it made.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.images import reference
from lab.manifests import CHART, helm
from lab.talk import run
from support.environments import spec
from support.kube import wait_for

if TYPE_CHECKING:
    from pathlib import Path

    import aiohttp

    from lab.kind import Cluster

Json = dict[str, Any]

RELEASE = "cage"
NAME = "cage-rollcage"
NAMESPACE = "rollcage-test"
SANDBOXES = "rollcage-test-sandboxes"
ENVIRONMENT = "pool"
WARM = 4
VOLUME = "rollcage-test-redis"
# Named by the volume and the claim; nobody needs to provide it.
STORAGE_CLASS = "rollcage-test"
DIRECTORY = "/var/rollcage-test-redis"

_SMALL = {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}}


def values() -> Json:
    """Return what the chart is installed with."""
    return {
        "images": {name: reference(name) for name in ("service", "toolserver", "redis")} | {"pullPolicy": "Never"},
        "gateway": {"replicas": 2, "service": {"type": "NodePort"}, "resources": _SMALL},
        "controller": {"resources": _SMALL},
        "redis": {"resources": _SMALL, "persistence": {"size": "64Mi", "storageClass": STORAGE_CLASS}},
        "sandboxes": {"namespace": SANDBOXES, "maxPods": 30},
        "environments": {
            ENVIRONMENT: spec(pool={"warm": WARM, "maxPods": 30}, pod={"priorityClassName": _class("sandboxes")})
        },
        "networkPolicy": {"gatewayFrom": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]},
        "keepOnUninstall": False,
    }


def _class(what: str) -> str:
    return f"{NAMESPACE}-{NAME}-{what}"


@dataclass
class Installed:
    """The release, and what tests ask of it."""

    cluster: Cluster
    core: Any
    directory: Path
    settings: Json = field(default_factory=values)

    def helm(self, *arguments: str) -> str:
        """Run helm on the release's namespace."""
        return run([helm(), *arguments, f"--kubeconfig={self.cluster.kubeconfig}", f"--namespace={NAMESPACE}"])

    def install(self) -> str:
        return self._deploy("install")

    def upgrade(self) -> str:
        return self._deploy("upgrade")

    def _deploy(self, verb: str) -> str:
        told = self.directory / "values.json"
        told.write_text(json.dumps(self.settings))
        return self.helm(verb, RELEASE, str(CHART), f"--values={told}", "--wait", "--timeout=4m")

    def rollback(self) -> None:
        self.helm("rollback", RELEASE, "--wait", "--timeout=4m")

    def secret(self, name: str, key: str) -> str:
        data = self.core.read_namespaced_secret(f"{NAME}-{name}", NAMESPACE).data
        return base64.b64decode(data[key]).decode()

    def pods(self, component: str) -> list[Any]:
        """Return the running pods of one part."""
        found = self.core.list_namespaced_pod(NAMESPACE, label_selector=f"app.kubernetes.io/component={component}")
        return [one for one in found.items if one.metadata.deletion_timestamp is None]

    def address(self) -> str:
        """Return where a node serves the gateway's Service."""
        port = self.core.read_namespaced_service(f"{NAME}-gateway", NAMESPACE).spec.ports[0].node_port
        node = self.core.read_node(f"{self.cluster.name}-worker2")
        (address,) = (one.address for one in node.status.addresses if one.type == "InternalIP")
        return f"http://{address}:{port}"

    def each_gateway(self) -> list[str]:
        return [f"http://{one.status.pod_ip}:8080" for one in self.pods("gateway")]

    def sandboxes(self) -> list[Any]:
        found = self.core.list_namespaced_pod(SANDBOXES, label_selector="app.kubernetes.io/managed-by=rollcage")
        return [one for one in found.items if one.metadata.deletion_timestamp is None]

    def wait_until_warm(self) -> None:
        def enough() -> bool:
            ready = [one for one in self.sandboxes() if one.status.phase == "Running"]
            return len(ready) >= WARM

        wait_for("the pool to fill", enough)

    def make_volume(self) -> None:
        """Make a directory of a worker's the volume that Redis will claim."""
        node = f"{self.cluster.name}-worker"
        self.cluster.engine.docker("exec", node, "sh", "-c", f"mkdir -p {DIRECTORY} && chmod 777 {DIRECTORY}")
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
        self.core.create_persistent_volume(
            {
                "metadata": {"name": VOLUME},
                "spec": {
                    "capacity": {"storage": "64Mi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": STORAGE_CLASS,
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": DIRECTORY},
                    "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
                },
            }
        )

    def remove_volume(self) -> None:
        self.core.delete_persistent_volume(VOLUME)
        self.cluster.engine.docker("exec", f"{self.cluster.name}-worker", "rm", "-rf", DIRECTORY)

    def everything(self) -> set[str]:
        """Return the name of every object of the cluster, but of those that come and go by themselves."""
        found = set()
        for path, kind in self._kinds():
            for one in self._get(path)["items"]:
                found.add(f"{kind} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}")
        return found

    def _kinds(self) -> list[tuple[str, str]]:
        groups = [f"/apis/{one['preferredVersion']['groupVersion']}" for one in self._get("/apis")["groups"]]
        return [
            (f"{base}/{one['name']}", one["kind"])
            for base in ("/api/v1", *groups)
            for one in self._get(base)["resources"]
            if "list" in one["verbs"] and one["kind"] not in {"Event", "ComponentStatus", "PodMetrics", "IPAddress"}
        ]

    def _get(self, path: str) -> Json:
        client = self.core.api_client
        method, url, headers, *_ = client.param_serialize(
            "GET", path, header_params={"Accept": "application/json"}, auth_settings=["BearerToken"]
        )
        answer = client.call_api(method, url, headers)
        answer.read()
        found: Json = json.loads(answer.data)
        return found


@dataclass(frozen=True)
class Trainer:
    """Calls a tool once and never again."""

    session: aiohttp.ClientSession
    token: str

    async def call(
        self, base: str, trace: str, call_id: str, command: str, *, environment: str = ENVIRONMENT
    ) -> tuple[int, Json]:
        url = f"{base}/agent-rft/runs/step/environments/{environment}/tools"
        body = {"call_id": call_id, "name": "shell", "arguments": {"command": command}, "trace_id": trace}
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.session.post(url, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)

    async def get(self, base: str, path: str) -> Json:
        async with self.session.get(f"{base}{path}", headers={"Authorization": f"Bearer {self.token}"}) as answer:
            found: Json = await answer.json(content_type=None)
            return found
