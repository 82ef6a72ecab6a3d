"""A release that is removed: what is kept is found again by the next one, and in the end nothing is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.beside_the_release import PORT, redis_elsewhere
from support.cluster_stage import until
from support.installed import NAME, NAMESPACE, RELEASE, SANDBOXES, VOLUME, Trainer
from support.inventory import everything
from support.kube import wait_for
from support.steady_load import COUNT, new_trace

if TYPE_CHECKING:
    from support.installed import Installed

# Each installs, upgrades or removes everything.
pytestmark = pytest.mark.timeout(900)

# What the tests themselves have made, and what every namespace has.
BEFORE = {
    f"Namespace /{NAMESPACE}",
    f"PersistentVolume /{VOLUME}",
    f"ConfigMap {NAMESPACE}/kube-root-ca.crt",
    f"ServiceAccount {NAMESPACE}/default",
}
KEPT = {
    # The API server's own note of the definition.
    "APIService /v1alpha1.rollcage.dev",
    "CustomResourceDefinition /environments.rollcage.dev",
    f"PersistentVolumeClaim {NAMESPACE}/data-{NAME}-redis-0",
}
OURS = (NAMESPACE, SANDBOXES, NAME, "rollcage.dev", "rollcage-test")


async def test_uninstalling_keeps_the_definition_and_the_records_for_the_next_release(
    release: Installed, trainer: Trainer
) -> None:
    trace, lost = new_trace(), new_trace()
    for one in (trace, lost):
        assert (await trainer.call(release.address(), one, "call_1", COUNT))[0] == 200
    await trainer.finish(release.address(), trace)
    had = _left(release)

    _uninstall(release, leaving=KEPT)
    assert len(had) > 40
    assert _left(release) == KEPT

    release.settings["keepOnUninstall"] = False
    release.install()
    release.wait_until_warm()
    again = Trainer(trainer.session, release.secret("token", "token"))
    base = release.address()
    assert len((await again.get(base, f"/v1/rollouts/{trace}/trajectory"))["steps"]) == 1

    async def judged() -> bool:
        found = await again.get(base, f"/v1/rollouts/{lost}/verdict")
        return (found.get("verdict") or {}).get("word") == "masked"

    # Its sandbox went with the first release.
    await until(judged, "a verdict on the rollout that was running")


@pytest.mark.alone  # With the release goes the definition of environments, everybody's.
async def test_a_rollout_outlives_the_move_to_a_redis_elsewhere(release: Installed, trainer: Trainer) -> None:
    trace = new_trace()
    assert (await trainer.call(release.address(), trace, "call_1", COUNT))[1].get("output") == "1\n"
    with redis_elsewhere(release.core) as redis:
        for name, key, content in (
            ("my-redis", "url", redis.url),
            ("my-authority", "ca.crt", redis.authority.decode()),
        ):
            secret = {"metadata": {"name": name}, "stringData": {key: content}}
            release.core.create_namespaced_secret(NAMESPACE, secret)
        external = {"secret": "my-redis", "ca": {"secret": "my-authority"}, "port": PORT}
        release.settings["redis"] |= {"enabled": False, "external": external}
        release.settings["gateway"] |= {
            "autoscaling": {"enabled": True, "minReplicas": 3},
            "ingress": {"enabled": True, "host": "rollcage.example", "tlsSecret": "certificate"},
        }
        before = {one.metadata.name for one in release.pods("gateway")}
        release.upgrade()
        # Those on their way out still serve, and ask the Redis that is gone.
        wait_for("the gateways of before to go", lambda: before.isdisjoint(_gateways(release)))

        async def goes_on() -> bool:
            # Until its binding is found in its pod it is told to come again; it never gets another sandbox.
            status, answer = await trainer.call(release.address(), trace, "call_2", COUNT)
            assert (status, answer.get("output")) == (200, "2\n") or answer.get("code") == "store_recovering", answer
            return status == 200

        await until(goes_on, "the second call")
        assert "Phase:          Succeeded" in release.helm("test", RELEASE, "--timeout=3m")
        assert not release.pods("redis")
        # Without anybody who measures, the autoscaler still sees to the least number.
        wait_for("the autoscaler's third gateway", lambda: len(release.pods("gateway")) == 3)

        _uninstall(release, leaving=set())
        for name in ("my-redis", "my-authority"):
            release.core.delete_namespaced_secret(name, NAMESPACE)
    wait_for("the Redis to go", lambda: not any("elsewhere" in one for one in everything(release.core)))
    assert _left(release) == set()


def _gateways(release: Installed) -> set[str]:
    """Name all gateways, those on their way out among them."""
    found = release.core.list_namespaced_pod(NAMESPACE, label_selector="app.kubernetes.io/component=gateway")
    return {one.metadata.name for one in found.items}


def _uninstall(release: Installed, *, leaving: set[str]) -> None:
    release.helm("uninstall", RELEASE, "--wait", "--timeout=4m")
    mine = {f"Secret {NAMESPACE}/my-redis", f"Secret {NAMESPACE}/my-authority"}
    # Namespaces and what hangs on others' deletion go a little later.
    try:
        wait_for("everything to go", lambda: _left(release) - mine <= leaving, seconds=90)
    except AssertionError as late:
        raise AssertionError("\n".join((str(_left(release)), *release.said("gateway")))) from late


def _left(release: Installed) -> set[str]:
    there = {one for one in everything(release.core) if any(word in one for word in OURS)}
    return {one for one in there if "elsewhere" not in one} - BEFORE
