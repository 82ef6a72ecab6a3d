"""
A pool filled by the controller against a bare Deployment of the same pod, on the one-node kind cluster.

Both in one run, each on a cluster that has come to rest. A sandbox counts when
a claim could have it; a pod of the Deployment when it is Ready. The full pool
then gets one first call for each of its sandboxes, all at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import aclosing, contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from lab.images import reference
from lab.talk import LabError, say
from load import ground
from load.frame import Outcome
from rollcage.core.environment import Environment
from rollcage.core.ids import RolloutId
from rollcage.rollouts.actions import Action
from rollcage.rollouts.usecases import open_use_cases
from rollcage.sandboxes.kubernetes import capabilities, names
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.manifest import pod_manifest
from rollcage.sandboxes.kubernetes.watching import Listed, Present, follow
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.wire.keyring import Keyring
from support.deployed import controller
from support.environments import environment, resource
from support.toolserver import KEYS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rollcage.rollouts.usecases import UseCases
    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.store.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument(
        "--starve",
        action="store_true",
        help="compare with nothing, but let something else take the processors while it is filled",
    )


def measure(options: argparse.Namespace) -> Outcome:
    """Fill the pool, empty it, and let a Deployment do the same."""
    return asyncio.run(_measure(ground.kubeconfig(), options.pods, starve=options.starve))


@contextmanager
def _starving() -> Iterator[None]:
    """Keep the processors busy with something else."""
    loops = 2 * (os.cpu_count() or 1)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


async def _measure(kubeconfig: Path, pods: int, *, starve: bool) -> Outcome:
    async with connected(kubeconfig) as api:
        await ground.crd(api)
        if not starve:
            await ground.quiet()
        pool, burst, counts = await _pool(api, kubeconfig, pods, starve=starve)
        bare = None
        if not starve:
            await ground.quiet()
            bare = await _deployment(api, pods)
    points = {"first": 0, "half": pods // 2, "90 %": int(pods * 0.9), "all": pods - 1}
    rows = [
        [name, *(f"{times[index]:.1f}" for index in points.values())]
        for name, times in (("pool", pool), *((("deployment", bare),) if bare else ()))
    ]
    figures = {
        **({"refill_ratio": round(pool[-1] / bare[-1], 3), "deployment_s": round(bare[-1], 1)} if bare else {}),
        "first_ready_s": round(pool[0], 1),
        **counts,
        "burst_p50_s": round(burst[pods // 2], 2),
        "burst_last_s": round(burst[-1], 2),
        "pool_s": round(pool[-1], 1),
    }
    return Outcome(figures, ("way", *(f"{point} s" for point in points)), rows, [f"{pods} pods"])


async def _pool(
    api: Api, kubeconfig: Path, pods: int, *, starve: bool
) -> tuple[list[float], list[float], dict[str, int]]:
    with tempfile.TemporaryDirectory() as directory:
        async with (
            ground.namespace(api, "bench-refill") as namespace,
            running(ServerConfig(find_executable())) as redis,
        ):
            seen: set[str] = set()
            watching = asyncio.create_task(_collect(api, namespace, seen))
            recipe = resource("bench", pool={"warm": pods, "maxPods": 2 * pods}, **ground.PODS)
            with controller(Path(directory), redis_url=redis.url, namespace=namespace, kubeconfig=kubeconfig) as run:
                async with open_store(Settings(redis.url)) as store:
                    say(f"pool: asking for {pods} sandboxes")
                    await api.request(
                        "POST", f"/apis/rollcage.dev/v1alpha1/namespaces/{namespace}/environments", body=recipe
                    )
                    with _starving() if starve else nullcontext():
                        times = await ground.filled(store, "bench", pods)
                        # What is made too much comes soon after.
                        await asyncio.sleep(10)
                    counts = {
                        "created": len(seen),
                        "deleted_as_stuck": sum(one["why"] == "stuck" for one in run.events("sandbox_removed")),
                    }
                    say(f"pool: {pods} first calls at once")
                    signer = Keyring.read(Path(directory) / "keyring.json").signer
                    async with open_use_cases(store, signer) as use_cases:
                        began = time.monotonic()
                        answers = [
                            _first_call(use_cases, Environment.from_resource(recipe), n, began) for n in range(pods)
                        ]
                        burst = sorted(await asyncio.gather(*answers))
                    # Before it refills: a node has no room for twice as many.
                    run.kill()
                    bound = await _sandboxes_in_use(store)
                    counts["distinct_sandboxes"] = len(set(bound))
            watching.cancel()
            return times, burst, counts


async def _first_call(use_cases: UseCases, recipe: Environment, number: int, began: float) -> float:
    answer = await use_cases.act(
        Action(
            rollout=RolloutId("bench", f"rollout-{number}"),
            run="bench",
            environment=recipe,
            call_id="first",
            tool="shell",
            arguments={"command": "true"},
            within=timedelta(minutes=5),
        )
    )
    if answer.outcome != "ok":
        raise LabError(f"a first call came to {answer.outcome}: {answer.output}")
    return time.monotonic() - began


async def _sandboxes_in_use(store: Store) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.pools.bindings("bench", cursor=cursor)
        found += [one.sandbox.name for one in page.items if one.sandbox]
        cursor = page.cursor
        if cursor is None:
            return found


async def _deployment(api: Api, pods: int) -> list[float]:
    async with ground.namespace(api, "bench-deployment") as namespace:
        pod = pod_manifest(
            environment("bench", **ground.PODS),
            name="bench",
            namespace=namespace,
            # A toolserver that trusts nobody does not start.
            keys=json.loads(KEYS),
            toolserver_image=reference("toolserver"),
            image_volumes=await capabilities.image_volumes(api),
        )
        # A Deployment knows neither.
        del pod["spec"]["restartPolicy"], pod["spec"]["activeDeadlineSeconds"]
        labels = {"app": "bench"}
        body = {
            "metadata": {"name": "bench"},
            "spec": {
                "replicas": pods,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod["spec"]},
            },
        }
        say(f"deployment: asking for {pods} replicas")
        began = time.monotonic()
        await api.request("POST", f"/apis/apps/v1/namespaces/{namespace}/deployments", body=body)
        times: list[float] = []
        while len(times) < pods:
            found = await api.request("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/bench")
            ready = found.get("status", {}).get("readyReplicas", 0)
            times += [time.monotonic() - began] * (ready - len(times))
            ground.in_time(began, f"{len(times)} of {pods} replicas are ready")
            await asyncio.sleep(0.25)
        return times


async def _collect(api: Api, namespace: str, seen: set[str]) -> None:
    """Count every pod that there ever was."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    async with aclosing(follow(api, path, selector=names.SELECTOR)) as updates:
        async for update in updates:
            objects = update.objects if isinstance(update, Listed) else (update.object,)
            if isinstance(update, Listed | Present):
                seen.update(one["metadata"]["uid"] for one in objects)
