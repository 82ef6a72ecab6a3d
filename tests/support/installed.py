"""
The chart installed on the test cluster, and a trainer that calls the gateways it made.

What else a test wants of a cluster beside it (a Redis, the operator's
definitions) is ``beside_the_release``'s.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from http import HTTPStatus
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
WITHOUT_SHELL = "library"
WARM = 4
VOLUME = "rollcage-test-redis"
# Named by the volume and the claim; nobody needs to provide it.
STORAGE_CLASS = "rollcage-test"
SIZE = "64Mi"

# The test runs in a fresh sandbox, on what the rollout left.
_GRADING = {"artifacts": ["src"], "grader": {"kind": "command", "command": "grep -qx 42 src/answer"}}
_SMALL = {"requests": {"cpu": "20m", "memory": "96Mi"}, "limits": {"memory": "512Mi"}}


def values() -> Json:
    """Return what the chart is installed with."""
    return {
        "images": {name: reference(name) for name in ("service", "toolserver", "redis")} | {"pullPolicy": "Never"},
        "gateway": {"replicas": 2, "service": {"type": "NodePort"}, "resources": _SMALL},
        "controller": {"resources": _SMALL},
        "redis": {"resources": _SMALL, "persistence": {"size": SIZE, "storageClass": STORAGE_CLASS}},
        "sandboxes": {"namespace": SANDBOXES, "maxPods": 30},
        "environments": {
            ENVIRONMENT: spec(
                pool={"warm": WARM, "maxPods": 30}, pod={"priorityClassName": _class("sandboxes")}, grading=_GRADING
            ),
            WITHOUT_SHELL: spec(pool={"warm": 0, "maxPods": 1}, tools={"builtin": ["read_file"]}),
        },
        # The tests are no pods.
        "networkPolicy": {one: [{"ipBlock": {"cidr": "0.0.0.0/0"}}] for one in ("gatewayFrom", "metricsFrom")},
        "monitoring": {
            "monitors": {"enabled": True, "labels": {"release": "prometheus"}},
            "rules": {"enabled": True, "runbooks": "https://docs.example/runbooks"},
            "dashboards": {"enabled": True},
        },
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

    def said(self, component: str) -> list[str]:
        """Return the logs of all pods of one part, those on their way out among them."""
        found = self.core.list_namespaced_pod(NAMESPACE, label_selector=f"app.kubernetes.io/component={component}")
        return [self.core.read_namespaced_pod_log(one.metadata.name, NAMESPACE) for one in found.items]

    def address(self) -> str:
        """Return where a node serves the gateway's Service."""
        port = self.core.read_namespaced_service(f"{NAME}-gateway", NAMESPACE).spec.ports[0].node_port
        node = self.core.read_node(f"{self.cluster.name}-worker2")
        (address,) = (one.address for one in node.status.addresses if one.type == "InternalIP")
        return f"http://{address}:{port}"

    def each_gateway(self) -> list[str]:
        return [f"http://{one.status.pod_ip}:8080" for one in self.pods("gateway")]

    def signing(self, *keys: str, signs: str) -> None:
        """Upgrade to these keys."""
        self.settings["signing"] = {"keys": list(keys), "signs": signs}
        self.upgrade()

    def sandboxes(self) -> list[Any]:
        found = self.core.list_namespaced_pod(SANDBOXES, label_selector="app.kubernetes.io/managed-by=rollcage")
        return [one for one in found.items if one.metadata.deletion_timestamp is None]

    def wait_until_warm(self) -> None:
        def enough() -> bool:
            ready = [one for one in self.sandboxes() if one.status.phase == "Running"]
            return len(ready) >= WARM

        wait_for("the pool to fill", enough)


@dataclass(frozen=True)
class Trainer:
    """Calls a tool once and never again."""

    session: aiohttp.ClientSession
    token: str

    async def call(
        self, base: str, trace: str, call_id: str, command: str, *, environment: str = ENVIRONMENT
    ) -> tuple[int, Json]:
        body = {"call_id": call_id, "name": "shell", "arguments": {"command": command}, "trace_id": trace}
        return await self._ask("POST", f"{base}/agent-rft/runs/step/environments/{environment}/tools", body)

    async def grade(self, base: str, trace: str) -> tuple[int, Json]:
        """Ask for a rollout's score."""
        body = {"sample": {"output_text": "done"}, "item": {}, "trace_id": trace}
        return await self._ask("POST", f"{base}/agent-rft/runs/step/environments/{ENVIRONMENT}/grade", body)

    async def finish(self, base: str, trace: str) -> None:
        """End a rollout."""
        status, answer = await self._ask("POST", f"{base}/v1/rollouts/{trace}/finish")
        assert status == HTTPStatus.OK, answer

    async def finish_all(self, base: str) -> None:
        """End every rollout that is still going on."""
        for one in (await self.get(base, "/v1/rollouts?label=active&limit=100"))["rollouts"]:
            await self.finish(base, one["rollout"])

    async def let_in(self, base: str) -> bool:
        """Tell whether a gateway knows the token."""
        return (await self._ask("GET", f"{base}/v1/environments"))[0] == HTTPStatus.OK

    async def get(self, base: str, path: str) -> Json:
        return (await self._ask("GET", f"{base}{path}"))[1]

    async def _ask(self, method: str, url: str, body: Json | None = None) -> tuple[int, Json]:
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.session.request(method, url, json=body, headers=headers) as answer:
            return answer.status, await answer.json(content_type=None)
