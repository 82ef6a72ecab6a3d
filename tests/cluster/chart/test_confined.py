"""
A sandbox of the installed chart reaches nobody, on a cluster that was seen to enforce NetworkPolicies.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.cli.enforcement import try_enforcement
from rollcage.sandboxes.kubernetes.api import connected
from support.cluster_stage import until
from support.environments import resource
from support.installed import SANDBOXES
from support.steady_load import COUNT, new_trace
from support.ways_out import command, laid_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollcage.cli.enforcement import Enforcement
    from support.installed import Installed, Trainer
    from support.ways_out import Outside, Way


@pytest.fixture(scope="module")
def ways(release: Installed) -> Iterator[tuple[dict[str, Way], Outside]]:
    """The ways out that are open to others."""
    with ThreadPoolExecutor() as beside:  # this thread has a loop already
        seen = beside.submit(asyncio.run, _trial(release)).result()
    if not seen.whole:
        pytest.skip(f"NetworkPolicy is not enforced on this cluster: egress {seen.egress}, ingress {seen.ingress}")
    with laid_out(release) as found:
        yield found


async def test_a_sandbox_reaches_nobody_in_a_call(
    release: Installed, trainer: Trainer, ways: tuple[dict[str, Way], Outside]
) -> None:
    goals, outside = ways[0] | await _answering(release, trainer), ways[1]
    attack = command(goals, seconds=6, word="sandbox")

    status, answer = await trainer.call(release.address(), new_trace(), "call_1", attack)

    assert (status, answer.get("output")) == (200, "[]\n"), answer
    assert not [one for one in outside.heard if b"sandbox" in one]


async def test_a_sandbox_reaches_nobody_in_its_first_instant(
    release: Installed, trainer: Trainer, ways: tuple[dict[str, Way], Outside]
) -> None:
    goals, outside = ways[0] | await _answering(release, trainer), ways[1]
    attack = f"{command(goals, seconds=6, word='eager')} > /workspace/reached"
    node = {"nodeSelector": {"kubernetes.io/hostname": f"{release.cluster.name}-worker"}}
    # Set-up begins before anybody has greeted the sandbox.
    eager = resource("eager", setup={"commands": [attack]}, pool={"warm": 1, "maxPods": 2}, pod=node)
    path = f"/apis/rollcage.dev/v1alpha1/namespaces/{SANDBOXES}/environments"
    trace = new_trace()
    answer: dict[str, Any] = {}

    async def known() -> bool:
        nonlocal answer
        status, answer = await trainer.call(
            release.address(), trace, "call_1", "cat /workspace/reached", environment="eager"
        )
        return status == HTTPStatus.OK

    async with connected(release.cluster.kubeconfig) as api:
        await api.request("POST", path, body=eager)
        try:
            await until(known, "a gateway that knows the environment")
        finally:
            await api.request("DELETE", f"{path}/eager")

    assert answer.get("output") == "[]\n", answer
    assert not [one for one in outside.heard if b"eager" in one]


async def _trial(release: Installed) -> Enforcement:
    async with connected(release.cluster.kubeconfig) as api:
        return await try_enforcement(api, image=release.settings["images"]["service"])


async def _answering(release: Installed, trainer: Trainer) -> dict[str, Way]:
    """Return two whom nobody else reaches either: that a rollout runs shows that both answer those who may ask."""
    trace = new_trace()
    assert (await trainer.call(release.address(), trace, "call_1", COUNT))[0] == 200
    rollout = await trainer.get(release.address(), f"/v1/rollouts/{trace}")
    sandbox = release.core.read_namespaced_pod(rollout["sandbox"]["name"], SANDBOXES)
    (redis,) = release.pods("redis")
    return {
        "Redis": ("tcp", redis.status.pod_ip, 6379),
        "another sandbox": ("tcp", sandbox.status.pod_ip, 8750),
    }
