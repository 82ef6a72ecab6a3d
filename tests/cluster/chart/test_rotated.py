"""A release that is changed under load: tokens, versions and signing keys are replaced, and nobody notices."""

from __future__ import annotations

import asyncio
import json
import secrets
from typing import TYPE_CHECKING, Any

import pytest

from lab.talk import LabError
from rollcage.gateway.tenants import token_hash
from support.cluster_stage import until
from support.installed import NAME, NAMESPACE, Trainer
from support.kube import wait_for
from support.steady_load import COUNT, new_trace, one_after_the_other, steady

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.installed import Installed

# Each is several upgrades long.
pytestmark = pytest.mark.timeout(900)

ROLLOUTS = 4
# A rollout of the steady stream, some seconds long.
CALLS = 8


async def test_tokens_are_replaced_without_a_restart(release: Installed, trainer: Trainer) -> None:
    before = _uids(release, "gateway")
    token = f"further-{secrets.token_hex(32)}"
    release.settings["tenants"] = {"more": [{"name": "further", "tokens": [token_hash(token)]}]}
    # A token that has become known is deleted; the next upgrade makes another.
    release.core.delete_namespaced_secret(f"{NAME}-token", NAMESPACE)
    await asyncio.to_thread(release.upgrade)
    for pod in release.pods("gateway"):
        # A kubelet brings a changed Secret when it next looks at the pod, which this makes now.
        touched = {"metadata": {"annotations": {"looked-at": secrets.token_hex(4)}}}
        release.core.patch_namespaced_pod(pod.metadata.name, NAMESPACE, touched)
    known = [Trainer(trainer.session, one) for one in (token, release.secret("token", "token"))]

    async def taken_up() -> bool:
        answers = [await one.let_in(base) for base in release.each_gateway() for one in known]
        late = [await trainer.let_in(base) for base in release.each_gateway()]
        return all(answers) and not any(late)

    await until(taken_up, "both gateways to know the new tokens and to have forgotten the old")
    assert _uids(release, "gateway") == before


async def test_upgrade_and_rollback_lose_no_rollout_and_fail_no_call(release: Installed, trainer: Trainer) -> None:
    token, keys = release.secret("token", "token"), _keys(release)
    before = _uids(release, "gateway", "controller")
    done = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        loads = [tasks.create_task(steady(trainer, release.address(), new_trace(), done)) for _ in range(ROLLOUTS)]
        # A second key, as for a rotation: gateways and controllers are replaced, and new sandboxes trust both.
        await asyncio.to_thread(release.signing, "k1", "k2", signs="k1")
        upgraded = _uids(release, "gateway", "controller")
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


async def test_a_signing_key_is_replaced_and_no_call_fails(release: Installed, trainer: Trainer) -> None:
    base, old, done = release.address(), new_trace(), asyncio.Event()
    await trainer.finish_all(base)
    await _call(trainer, base, old, 1)
    sandbox = (await trainer.get(base, f"/v1/rollouts/{old}"))["sandbox"]["name"]
    async with asyncio.TaskGroup() as tasks:
        stream = tasks.create_task(one_after_the_other(trainer, base, done, calls=CALLS))
        await _refused(release, "k1", "k3", signs="k3", because="no sandbox trusts k3 yet")

        await asyncio.to_thread(release.signing, "k1", "k3", signs="k1")
        new = _keys(release)["k3"]
        await _becomes("all but the one in use are replaced", lambda: _without("k3", release) == {sandbox})
        # Begun between the steps, and there to the end.
        lasting = tasks.create_task(steady(trainer, base, new_trace(), done))
        await _refused(release, "k3", signs="k3", because="still sign with k1")
        await _refused(release, "k1", "k3", signs="k3", because=sandbox)
        await _call(trainer, base, old, 2)
        await trainer.finish(base, old)
        await _becomes("no sandbox is of before", lambda: not _without("k3", release))

        await asyncio.to_thread(release.signing, "k1", "k3", signs="k3")
        await _becomes("nobody signs with the old key", lambda: _signs(release) == {"k3"})

        await asyncio.to_thread(release.signing, "k3", signs="k3")
        await _becomes("a sandbox trusts the new key alone", lambda: {"k3"} in _trusted(release).values())
        done.set()

    assert _keys(release) == {"k3": new}
    assert stream.result() > 3
    assert lasting.result() > 10
    await _call(trainer, base, new_trace(), 1)


async def _call(trainer: Trainer, base: str, trace: str, number: int) -> None:
    status, answer = await trainer.call(base, trace, f"call_{number}", COUNT)
    assert (status, answer.get("output")) == (200, f"{number}\n"), answer


async def _refused(release: Installed, *keys: str, signs: str, because: str) -> None:
    stood = release.settings.get("signing", {})
    with pytest.raises(LabError, match=because):
        await asyncio.to_thread(release.signing, *keys, signs=signs)
    release.settings["signing"] = stood


async def _becomes(what: str, look: Callable[[], bool]) -> None:
    """Wait in another thread, so that the load goes on."""
    await asyncio.to_thread(wait_for, what, look)


def _trusted(release: Installed) -> dict[str, set[str]]:
    """Return the names of the keys that each sandbox trusts."""
    return {
        pod.metadata.name: set(json.loads(variable.value))
        for pod in release.sandboxes()
        for variable in pod.spec.containers[0].env
        if variable.name == "ROLLCAGE_KEYS"
    }


def _without(key: str, release: Installed) -> set[str]:
    return {name for name, keys in _trusted(release).items() if key not in keys}


def _signs(release: Installed) -> set[str]:
    """Return the names of the keys that somebody still signs with, those that are on their way out included."""
    pods: list[Any] = release.core.list_namespaced_pod(NAMESPACE).items
    return {one.metadata.annotations["rollcage.dev/signs"] for one in pods if _signing(one)}


def _signing(pod: Any) -> bool:
    return "rollcage.dev/signs" in (pod.metadata.annotations or {})


def _uids(release: Installed, *components: str) -> set[str]:
    return {pod.metadata.uid for part in components for pod in release.pods(part)}


def _keys(release: Installed) -> dict[str, str]:
    keys: dict[str, str] = json.loads(release.secret("keyring", "keyring.json"))["keys"]
    return keys
