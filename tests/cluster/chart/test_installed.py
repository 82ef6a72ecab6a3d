"""
The chart, installed from the project's own images: it serves, holds its parts in, and tells nobody what is secret.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.cluster_stage import until
from support.installed import ENVIRONMENT, NAMESPACE, RELEASE, SANDBOXES, WITHOUT_SHELL
from support.inventory import get
from support.kube import Namespace, wait_for
from support.steady_load import COUNT, new_trace

if TYPE_CHECKING:
    from support.installed import Installed, Trainer

ENVIRONMENTS = f"/apis/rollcage.dev/v1alpha1/namespaces/{SANDBOXES}"


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


def test_helm_test_makes_a_call_where_there_is_a_shell(release: Installed) -> None:
    known = {one["metadata"]["name"] for one in get(release.core, f"{ENVIRONMENTS}/environments")["items"]}

    assert {ENVIRONMENT, WITHOUT_SHELL} <= known
    assert "Phase:          Succeeded" in release.helm("test", RELEASE, "--timeout=3m")


async def test_a_rollout_is_the_same_through_both_gateways_and_masked_once_its_pod_was_deleted(
    release: Installed, trainer: Trainer
) -> None:
    first, second = release.each_gateway()
    trace = new_trace()
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
    status, refusal = await trainer.grade(first, trace)
    assert (status, refusal["code"]) == (503, "masked"), refusal


async def test_what_a_rollout_left_is_graded_in_a_sandbox_of_its_own(release: Installed, trainer: Trainer) -> None:
    first, second = release.each_gateway()
    scores = {}
    for number in (41, 42):
        trace = new_trace()
        status, answer = await trainer.call(first, trace, "call_1", f"mkdir src && echo {number} > src/answer")
        assert (status, answer.get("output")) == (200, ""), answer
        scores[number] = await trainer.grade(second, trace)

    assert scores == {41: (200, {"score": 0.0}), 42: (200, {"score": 1.0})}


def test_the_controller_may_do_all_that_it_tries(release: Installed) -> None:
    said = release.said("controller")

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


async def test_redis_comes_back_with_its_records_and_rollouts_go_on(release: Installed, trainer: Trainer) -> None:
    trace = new_trace()
    assert (await trainer.call(release.address(), trace, "call_1", COUNT))[0] == 200
    (before,) = release.pods("redis")
    release.core.delete_namespaced_pod(before.metadata.name, NAMESPACE)
    # A rollout that runs needs no Redis; only where a gateway does not know its sandbox it has to come again.
    wait_for("another Redis", lambda: _ready(release.pods("redis"), but=before.metadata.uid))

    async def served() -> bool:
        return (await trainer.call(release.address(), trace, "call_2", COUNT))[1].get("output") == "2\n"

    await until(served, "the second call")
    assert len((await trainer.get(release.address(), f"/v1/rollouts/{trace}/trajectory"))["steps"]) == 2


def _there(release: Installed, name: str) -> bool:
    return any(one.metadata.name == name for one in release.core.list_namespaced_pod(SANDBOXES).items)


def _ready(pods: list[Any], *, but: str) -> bool:
    return any(
        one.metadata.uid != but
        and all(status.ready for status in one.status.container_statuses or [])
        and one.status.container_statuses
        for one in pods
    )
