"""
What the benchmarks on the one-node kind cluster stand on.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from lab import engine
from lab.kind import Cluster
from lab.places import ROOT
from lab.talk import LabError, say
from rollcage.sandboxes.kubernetes.refusals import Conflict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.store.store import Store

    Json = dict[str, Any]

LIMIT_SECONDS = 1800.0
QUIET_SHARE = 0.7
# With hundreds of pods a small node never rests.
QUIET_SECONDS = 90.0
PODS: dict[str, Any] = {
    # As the sandbox image has it: an image volume costs the kubelet something for as long as its pod lives.
    "toolserver": {"delivery": "baked"},
    "resources": {
        "requests": {"cpu": "1m", "memory": "8Mi", "ephemeral-storage": "1Mi"},
        "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
    },
}


def kubeconfig() -> Path:
    """Return how to reach the cluster; LabError if it is not up."""
    up = engine.running()
    cluster = Cluster("one-node", up) if up else None
    if cluster is None or not cluster.kubeconfig.exists():
        hint = "scripts/cluster up && scripts/images build && scripts/cluster load"
        raise LabError("the one-node cluster is not up", hint)
    return cluster.kubeconfig


async def filled(store: Store, environment: str, count: int) -> list[float]:
    """Wait until a pool has that many sandboxes ready; return when each was, in seconds from now."""
    began = time.monotonic()
    times: list[float] = []
    while len(times) < count:
        ready = (await store.pools.counts(environment)).ready
        times += [time.monotonic() - began] * (ready - len(times))
        in_time(began, f"{len(times)} of {count} sandboxes are ready")
        await asyncio.sleep(0.25)
    return times


def in_time(began: float, so_far: str) -> None:
    """Give up on what takes far too long."""
    if time.monotonic() - began > LIMIT_SECONDS:
        raise LabError(f"after {LIMIT_SECONDS:.0f} s {so_far}")


@asynccontextmanager
async def namespace(api: Api, name: str) -> AsyncIterator[str]:
    """Lend a namespace for sandboxes."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await api.request("POST", "/api/v1/namespaces", body={"metadata": {"name": name, "labels": labels}})
    accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
    await until(lambda: api.request("GET", accounts), lambda found: bool(found["items"]))
    try:
        yield name
    finally:
        await api.request("DELETE", f"/api/v1/namespaces/{name}")
        await until(
            lambda: api.request("GET", "/api/v1/namespaces"),
            lambda found: all(one["metadata"]["name"] != name for one in found["items"]),
        )


async def crd(api: Api) -> None:
    """Teach the cluster what an environment is."""
    body = yaml.safe_load((ROOT / "manifests" / "crd" / "environments.rollcage.dev.yaml").read_text())
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    try:
        await api.request("POST", path, body=body)
    except Conflict:
        return
    await until(
        lambda: api.request("GET", f"{path}/{body['metadata']['name']}"),
        lambda found: any(
            one["type"] == "Established" and one["status"] == "True" for one in found["status"]["conditions"] or ()
        ),
    )


async def until(look: Callable[[], Awaitable[Json]], enough: Callable[[Json], bool]) -> None:
    """Look until it is enough."""
    while not enough(await look()):  # noqa: ASYNC110 - the cluster has no event for it
        await asyncio.sleep(0.5)


async def quiet() -> None:
    """Wait until the machine is mostly idle: nodes go on cleaning up long after the API server has forgotten a pod."""
    deadline = time.monotonic() + QUIET_SECONDS
    idle = 0.0
    while idle < QUIET_SHARE:
        before = _processor_times()
        await asyncio.sleep(3)
        spent = [after - was for was, after in zip(before, _processor_times(), strict=True)]
        idle = spent[3] / sum(spent)
        if time.monotonic() > deadline:
            say(f"the machine does not come to rest, it is idle for {idle:.0%}; going on")
            return


def _processor_times() -> list[int]:
    return [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
