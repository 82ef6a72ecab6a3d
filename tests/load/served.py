"""
The service that a burst goes through: processes on this machine, or what the chart installs.

The same Redis, controller and two gateways either way; the chart has two
controllers, of which one leads. Who measures reaches all of them directly.
"""

from __future__ import annotations

import re
import socket
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lab import engine
from lab.images import reference
from lab.kind import Cluster
from load import ground
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.wire.keyring import Keyring
from support.api_proxy import api_proxy
from support.deployed import controller, gateway
from support.environments import resource, spec
from support.installed import NAMESPACE, RELEASE, SANDBOXES, Installed
from support.inventory import text
from support.kube import connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.store.store import Store
    from rollcage.wire.tokens import Signer

TENANT: Final = "acme"
ENVIRONMENT: Final = "bench"
GATEWAYS: Final = 2
_TOKEN: Final = "bench-" + "t" * 32
# Of a node of two cores, most of which belongs to the sandboxes.
_PART: Final = {"requests": {"cpu": "50m", "memory": "96Mi"}, "limits": {"memory": "1Gi"}}
# Redis and the sandboxes let nobody in but their own; who measures is a stranger.
_OPEN: Final = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "bench"},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]},
}
_WRITTEN: Final = re.compile(
    r'^apiserver_request_total\{.*code="2.*resource="pods",.*subresource="",verb="(POST|PATCH|DELETE)",.*\} (\S+)$',
    re.MULTILINE,
)


@dataclass(frozen=True)
class Served:
    """A controller and gateways over a pool."""

    store: Store
    signer: Signer
    token: str
    gateways: tuple[tuple[str, int], ...]
    environments: str
    """The path of the environments that the controller follows."""
    pods: str
    """The path of the sandboxes' pods."""
    writes: Callable[[], Mapping[str, int]]
    """What the controller has written about pods so far."""
    data_plane: Callable[[], int] | None
    """How often the gateways wrote to the API server; None where they have no way to it."""


@asynccontextmanager
async def by_processes(api: Api, kubeconfig: Path, warm: int) -> AsyncIterator[Served]:
    """Run the parts of the service here."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        await ground.crd(api)
        namespace = await stack.enter_async_context(ground.namespace(api, "bench-burst"))
        redis = await stack.enter_async_context(running(ServerConfig(find_executable())))
        controllers = await stack.enter_async_context(api_proxy(kubeconfig))
        data_plane = await stack.enter_async_context(api_proxy(kubeconfig))
        stack.enter_context(
            controller(directory, redis_url=redis.url, namespace=namespace, kubeconfig=controllers.kubeconfig)
        )
        addresses = tuple(("127.0.0.1", _free_port()) for _ in range(GATEWAYS))
        for _, port in addresses:
            stack.enter_context(
                gateway(directory, redis_url=redis.url, token=_TOKEN, port=port, kubeconfig=data_plane.kubeconfig)
            )
        path = f"/apis/rollcage.dev/v1alpha1/namespaces/{namespace}/environments"
        body = resource(ENVIRONMENT, pool={"warm": warm, "maxPods": warm}, **ground.PODS)
        await api.request("POST", path, body=body)
        yield Served(
            store=await stack.enter_async_context(open_store(Settings(redis.url))),
            signer=Keyring.read(directory / "keyring.json").signer,
            token=_TOKEN,
            gateways=addresses,
            environments=path,
            pods=f"/api/v1/namespaces/{namespace}/pods",
            writes=lambda: {kind: count for kind, count in controllers.writes.items() if "pods" in kind},
            data_plane=lambda: sum(data_plane.writes.values()),
        )


@asynccontextmanager
async def by_chart(api: Api, kubeconfig: Path, warm: int) -> AsyncIterator[Served]:
    """Install the chart on the cluster, and remove all of it afterwards."""
    running_engine = engine.running()
    assert running_engine
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        core = stack.enter_context(connected(kubeconfig))
        release = Installed(Cluster("one-node", running_engine), core, directory, _values(warm))
        core.create_namespace({"metadata": {"name": NAMESPACE}})
        stack.callback(core.delete_namespace, NAMESPACE)
        stack.callback(release.helm, "uninstall", RELEASE, "--wait", "--ignore-not-found", "--timeout=20m")
        before = _pod_writes(core)
        release.install()
        for closed in (NAMESPACE, SANDBOXES):
            await api.request("POST", f"/apis/networking.k8s.io/v1/namespaces/{closed}/networkpolicies", body=_OPEN)
        (redis,) = release.pods("redis")
        (directory / "keyring.json").write_text(release.secret("keyring", "keyring.json"))
        path = f"/apis/rollcage.dev/v1alpha1/namespaces/{SANDBOXES}/environments"
        # Not before: what is filled while Helm waits cannot be timed.
        await want(api, path, warm)
        url = f"redis://:{release.secret('redis', 'password')}@{redis.status.pod_ip}:6379/0"
        yield Served(
            store=await stack.enter_async_context(open_store(Settings(url))),
            signer=Keyring.read(directory / "keyring.json").signer,
            token=release.secret("token", "token"),
            gateways=tuple((one.status.pod_ip, 8080) for one in release.pods("gateway")),
            environments=path,
            pods=f"/api/v1/namespaces/{SANDBOXES}/pods",
            writes=lambda: _pod_writes(core) - before,
            data_plane=None,
        )


async def want(api: Api, environments: str, warm: int) -> None:
    """Have so many kept ready."""
    path = f"{environments}/{ENVIRONMENT}"
    found = await api.request("GET", path)
    found["spec"]["pool"]["warm"] = warm
    await api.request("PUT", path, body=found)


def _values(most: int) -> dict[str, Any]:
    pool = {"warm": 0, "maxPods": most}
    return {
        "images": {name: reference(name) for name in ("service", "toolserver", "redis")} | {"pullPolicy": "Never"},
        "gateway": {"replicas": GATEWAYS, "resources": _PART},
        "controller": {"resources": _PART},
        "redis": {"resources": _PART, "persistence": {"enabled": False}},
        "tenants": {"generated": TENANT},
        # Those that are on their way out count too.
        "sandboxes": {"namespace": SANDBOXES, "maxPods": 2 * most},
        "environments": {ENVIRONMENT: spec(pool=pool, **ground.PODS)},
        "networkPolicy": {"gatewayFrom": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]},
        "keepOnUninstall": False,
    }


def _pod_writes(core: Any) -> Counter[str]:
    """Count what was written about pods, by whoever it was but the nodes."""
    found: Counter[str] = Counter()
    for verb, count in _WRITTEN.findall(text(core, "/metrics")):
        found[f"{verb} pods"] += int(float(count))
    # The kubelet has the last word on each pod that was deleted.
    found["DELETE pods"] //= 2
    return found


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
