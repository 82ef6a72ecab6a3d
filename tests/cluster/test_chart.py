"""
The chart, installed from the project's own images: it serves, upgrades under load, goes back, and leaves nothing.

The tests stand in the order of a release's life, and share one.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from lab.manifests import CHART
from rollcage.cli.enforcement import try_enforcement
from rollcage.sandboxes.kubernetes.api import connected
from support.cluster_stage import until
from support.environments import resource
from support.installed import NAME, NAMESPACE, RELEASE, SANDBOXES, VOLUME, Installed, Trainer
from support.kube import Namespace, wait_for
from support.ways_out import command, laid_out

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.kind import Cluster
    from rollcage.cli.enforcement import Enforcement
    from support.ways_out import Outside, Way

COUNT = "echo x >> /workspace/n; wc -l < /workspace/n"
SECONDS = aiohttp.ClientTimeout(total=120)
ROLLOUTS = 4
# Often enough that every connection is used while its gateway still tells callers to leave it.
PAUSE = 0.5
# What the test itself has made, and what every namespace has.
BEFORE = {
    f"Namespace /{NAMESPACE}",
    f"PersistentVolume /{VOLUME}",
    f"ConfigMap {NAMESPACE}/kube-root-ca.crt",
    f"ServiceAccount {NAMESPACE}/default",
}


@pytest.fixture(scope="module")
def release(cluster: Cluster, core: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The chart, installed; what is left of it after the tests is removed."""
    made = Installed(cluster, core, tmp_path_factory.mktemp("chart"))
    core.create_namespace(
        {"metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    )
    made.make_volume()
    try:
        made.install()
        made.wait_until_warm()
        yield made
    finally:
        if RELEASE in made.helm("list", "--all", "--short"):
            made.helm("uninstall", RELEASE, "--wait", "--timeout=4m")
        core.delete_namespace(NAMESPACE)
        made.remove_volume()


@pytest.fixture
async def trainer(release: Installed) -> AsyncIterator[Trainer]:
    async with aiohttp.ClientSession(timeout=SECONDS) as session:
        yield Trainer(session, release.secret("token", "token"))


def test_the_service_runs_as_nobody_and_cannot_write_to_its_root(release: Installed) -> None:
    namespace = Namespace(NAMESPACE, release.core)
    program = (
        "import os\n"
        "try:\n    open('/etc/planted', 'w')\n"
        "except OSError as error:\n    print(os.getuid(), error.strerror)"
    )
    for part in ("gateway", "controller"):
        for pod in release.pods(part):
            assert namespace.exec(pod.metadata.name, "python3", "-c", program) == "10001 Read-only file system\n"
    (redis,) = release.pods("redis")
    assert "Read-only file system" in namespace.exec(redis.metadata.name, "touch", "/etc/planted")


def test_helm_test_makes_a_call(release: Installed) -> None:
    assert "Phase:          Succeeded" in release.helm("test", RELEASE, "--timeout=3m")


async def test_a_rollout_is_the_same_through_both_gateways_and_masked_once_its_pod_was_deleted(
    release: Installed, trainer: Trainer
) -> None:
    first, second = release.each_gateway()
    trace = _new("trace")
    for number, base in enumerate((first, second, first), start=1):
        status, answer = await trainer.call(base, trace, f"call_{number}", COUNT)
        assert (status, answer.get("output", "").strip()) == (200, str(number)), answer

    rollout = await trainer.get(second, f"/v1/rollouts/{trace}")
    release.core.delete_namespaced_pod(rollout["sandbox"]["name"], SANDBOXES)
    # It may still answer while it is on its way out.
    wait_for("the pod to go", lambda: not _there(release, rollout["sandbox"]["name"]))

    status, answer = await trainer.call(second, trace, "call_4", COUNT)
    assert (status, answer["code"]) == (503, "masked"), answer
    verdict = await trainer.get(first, f"/v1/rollouts/{trace}/verdict")
    assert (verdict["verdict"]["word"], verdict["verdict"]["cause"]) == ("masked", "deleted")


def test_the_controller_may_do_all_that_it_tries(release: Installed) -> None:
    said = [release.core.read_namespaced_pod_log(pod.metadata.name, NAMESPACE) for pod in release.pods("controller")]

    assert any("election_won" in one for one in said)
    assert not [line for one in said for line in one.splitlines() if "Forbidden" in line]


def test_nothing_secret_is_in_a_sandbox(release: Installed) -> None:
    keyring = json.loads(release.secret("keyring", "keyring.json"))
    secrets = [*keyring["keys"].values(), release.secret("token", "token"), release.secret("redis", "password")]
    pods = release.sandboxes()

    assert pods
    for pod in pods:
        text = json.dumps(release.core.api_client.sanitize_for_serialization(pod))
        assert not [secret for secret in secrets if secret in text]
        assert pod.spec.automount_service_account_token is False
        assert not [volume for volume in pod.spec.volumes if volume.secret or volume.projected]
        assert not [container for container in pod.spec.containers if container.env_from]


# For the class alone: what it lays out must be gone before the release is looked at again.
@pytest.fixture(scope="class")
def ways(release: Installed) -> Iterator[tuple[dict[str, Way], Outside]]:
    """The ways out that are open to others, on a cluster that was seen to enforce policies."""
    with ThreadPoolExecutor() as beside:  # this thread has a loop already
        seen = beside.submit(asyncio.run, _trial(release)).result()
    if not seen.whole:
        pytest.skip(f"NetworkPolicy is not enforced on this cluster: egress {seen.egress}, ingress {seen.ingress}")
    with laid_out(release) as found:
        yield found


class TestASandboxReachesNobody:
    async def test_in_a_call(self, release: Installed, trainer: Trainer, ways: tuple[dict[str, Way], Outside]) -> None:
        goals, outside = ways[0] | await _answering(release, trainer), ways[1]
        attack = command(goals, seconds=6, word="sandbox")

        status, answer = await trainer.call(release.address(), _new("trace"), "call_1", attack)

        assert (status, answer.get("output")) == (200, "[]\n"), answer
        assert not [one for one in outside.heard if b"sandbox" in one]

    async def test_in_its_first_instant(
        self, release: Installed, trainer: Trainer, ways: tuple[dict[str, Way], Outside]
    ) -> None:
        goals, outside = ways[0] | await _answering(release, trainer), ways[1]
        attack = f"{command(goals, seconds=6, word='eager')} > /workspace/reached"
        node = {"nodeSelector": {"kubernetes.io/hostname": f"{release.cluster.name}-worker"}}
        # Set-up begins before anybody has greeted the sandbox.
        eager = resource("eager", setup={"commands": [attack]}, pool={"warm": 1, "maxPods": 2}, pod=node)
        path = f"/apis/rollcage.dev/v1alpha1/namespaces/{SANDBOXES}/environments"
        trace = _new("trace")
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


async def test_redis_comes_back_with_its_records_and_rollouts_go_on(release: Installed, trainer: Trainer) -> None:
    trace = _new("trace")
    assert (await trainer.call(release.address(), trace, "call_1", COUNT))[0] == 200
    (before,) = release.pods("redis")
    release.core.delete_namespaced_pod(before.metadata.name, NAMESPACE)
    # A rollout that runs needs no Redis; only where a gateway does not know its sandbox it has to come again.
    wait_for("another Redis", lambda: _ready(release.pods("redis"), but=before.metadata.uid))

    async def served() -> bool:
        return (await trainer.call(release.address(), trace, "call_2", COUNT))[1].get("output") == "2\n"

    await until(served, "the second call")
    assert len((await trainer.get(release.address(), f"/v1/rollouts/{trace}/trajectory"))["steps"]) == 2


def test_what_was_not_installed_would_be_accepted(release: Installed) -> None:
    wanted = ("gateway.ingress.enabled=true", "gateway.ingress.host=a.example", "gateway.autoscaling.enabled=true")
    release.helm(
        "upgrade", RELEASE, str(CHART), "--reuse-values", "--dry-run=server", *(f"--set={one}" for one in wanted)
    )


async def test_upgrade_and_rollback_lose_no_rollout_and_fail_no_call(release: Installed, trainer: Trainer) -> None:
    token, keys = release.secret("token", "token"), _keys(release)
    before = {pod.metadata.name for part in ("gateway", "controller") for pod in release.pods(part)}
    done = asyncio.Event()
    traces = [_new("trace") for _ in range(ROLLOUTS)]
    async with asyncio.TaskGroup() as tasks:
        loads = [tasks.create_task(_load(trainer, release.address(), trace, done)) for trace in traces]
        # A second key, as for a rotation: gateways and controllers are replaced, and new sandboxes trust both.
        release.settings["signing"] = {"keys": ["k1", "k2"], "signs": "k1"}
        await asyncio.to_thread(release.upgrade)
        upgraded = {pod.metadata.name for part in ("gateway", "controller") for pod in release.pods(part)}
        both = _keys(release)
        await asyncio.to_thread(release.rollback)
        done.set()
    calls = [load.result() for load in loads]

    assert not before & upgraded
    assert (both["k1"], set(both)) == (keys["k1"], {"k1", "k2"})
    assert _keys(release) == keys
    assert release.secret("token", "token") == token
    # Each call of each rollout found what the one before had left.
    assert all(count > 10 for count in calls), calls


def test_uninstalling_leaves_nothing(release: Installed) -> None:
    had = _left(release)
    release.helm("uninstall", RELEASE, "--wait", "--timeout=4m")
    # Namespaces and what hangs on others' deletion go a little later.
    with suppress(AssertionError):
        wait_for("everything to go", lambda: not _left(release), seconds=90)

    assert len(had) > 40
    assert _left(release) == set()


async def _trial(release: Installed) -> Enforcement:
    async with connected(release.cluster.kubeconfig) as api:
        return await try_enforcement(api, image=release.settings["images"]["service"])


async def _answering(release: Installed, trainer: Trainer) -> dict[str, Way]:
    """Return two whom nobody else reaches either: that a rollout runs shows that both answer those who may ask."""
    trace = _new("trace")
    assert (await trainer.call(release.address(), trace, "call_1", COUNT))[0] == 200
    rollout = await trainer.get(release.address(), f"/v1/rollouts/{trace}")
    sandbox = release.core.read_namespaced_pod(rollout["sandbox"]["name"], SANDBOXES)
    (redis,) = release.pods("redis")
    return {
        "Redis": ("tcp", redis.status.pod_ip, 6379),
        "another sandbox": ("tcp", sandbox.status.pod_ip, 8750),
    }


def _left(release: Installed) -> set[str]:
    return {one for one in release.everything() if _ours(one)} - BEFORE


async def _load(trainer: Trainer, base: str, trace: str, done: asyncio.Event) -> int:
    number = 0
    while not done.is_set():
        number += 1
        status, answer = await trainer.call(base, trace, f"call_{number}", COUNT)
        assert (status, answer.get("output", "").strip()) == (200, str(number)), answer
        await asyncio.sleep(PAUSE)
    return number


def _ours(name: str) -> bool:
    return any(word in name for word in (NAMESPACE, SANDBOXES, NAME, "rollcage.dev", "rollcage-test"))


def _there(release: Installed, name: str) -> bool:
    return any(one.metadata.name == name for one in release.core.list_namespaced_pod(SANDBOXES).items)


def _ready(pods: list[Any], *, but: str) -> bool:
    return any(
        one.metadata.uid != but
        and all(status.ready for status in one.status.container_statuses or [])
        and one.status.container_statuses
        for one in pods
    )


def _keys(release: Installed) -> dict[str, str]:
    keys: dict[str, str] = json.loads(release.secret("keyring", "keyring.json"))["keys"]
    return keys


def _new(what: str) -> str:
    return f"{what}_{uuid.uuid4().hex}"
