"""What the doctor makes of what it sees."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from rollcage.cli.doctor import cluster, cluster_facts, laptop, service
from rollcage.cli.doctor.findings import Finding, Level
from rollcage.cli.enforcement import Enforced, Enforcement
from rollcage.client.models import Pool, Pools, Readiness
from rollcage.sandboxes.source import SandboxRejected

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def deployment(part: str, *, available: int, **env: str) -> dict[str, Any]:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    containers = [{"image": "service:1", "env": variables}]
    return {
        "metadata": {"name": part, "namespace": "rollcage", "labels": {"app.kubernetes.io/component": part}},
        "spec": {"replicas": 2, "template": {"spec": {"containers": containers}}},
        "status": {"availableReplicas": available} if available else {},
    }


def lease(holder: str, age: float) -> dict[str, Any]:
    renewed = (NOW - timedelta(seconds=age)).isoformat().replace("+00:00", "Z")
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


def labelled(**labels: str) -> dict[str, Any]:
    return {"metadata": {"labels": {f"pod-security.kubernetes.io/{name}": value for name, value in labels.items()}}}


CLOSED = {"spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}}
OPEN = {"spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "egress": [{}]}}
SOME = {"spec": {"podSelector": {"matchLabels": {"a": "b"}}, "policyTypes": ["Ingress", "Egress"]}}


STOPPED = Enforcement(egress=Enforced.YES, ingress=Enforced.YES)
LATE = Enforcement(egress=Enforced.LATE, ingress=Enforced.YES)
HALF = Enforcement(egress=Enforced.YES, ingress=Enforced.NO)


def pools(*, heard: bool = True, **levels: int) -> Pools:
    figures = {"wanted": 2, "ready": 2, "set_aside": 0, "claimed": 0, "waiting": 0, "starting": 0, **levels}
    pool = Pool(environment="small", most=10, reserved=0, spent=0, **figures)
    return Pools(controller_heard=heard, pools=(pool,))


def ready(**checks: bool) -> Readiness:
    return Readiness(ready=True, draining=False, checks=checks)


@pytest.mark.parametrize(
    ("finding", "level"),
    [
        pytest.param(laptop.python((3, 11, 0)), Level.OK, id="Python is new enough"),
        pytest.param(laptop.python((3, 10, 9)), Level.BROKEN, id="Python is too old"),
        pytest.param(laptop.packages(["redis"]), Level.BROKEN, id="a package is missing"),
        pytest.param(laptop.port_taken(8080, taken=True), Level.WARNING, id="the port is taken"),
        pytest.param(service.readiness(ready(redis=True)), Level.OK, id="the gateway is ready"),
        pytest.param(service.readiness(ready(redis=False)), Level.WARNING, id="Redis was lost"),
        pytest.param(service.clock(0.4), Level.OK, id="clocks agree"),
        pytest.param(service.clock(-60), Level.WARNING, id="a minute behind"),
        pytest.param(service.clock(600), Level.BROKEN, id="ten minutes ahead"),
        pytest.param(service.clock(None), Level.WARNING, id="no time told"),
        pytest.param(service.levels(pools())[0], Level.OK, id="a full pool"),
        pytest.param(service.levels(pools(ready=0, claimed=2))[0], Level.WARNING, id="an empty pool in use"),
        pytest.param(service.levels(pools(ready=0))[0], Level.BROKEN, id="an empty pool that nobody fills"),
        pytest.param(service.levels(pools(heard=False))[0], Level.BROKEN, id="no controller is heard"),
        pytest.param(cluster_facts.leader(lease("c-1", 2), now=NOW), Level.OK, id="a leader that renews"),
        pytest.param(cluster_facts.leader(lease("c-1", 300), now=NOW), Level.BROKEN, id="a leader that fell silent"),
        pytest.param(cluster_facts.leader(lease("", 2), now=NOW), Level.BROKEN, id="nobody leads"),
        pytest.param(cluster_facts.leader(None, now=NOW), Level.BROKEN, id="nobody ever led"),
        pytest.param(
            cluster_facts.namespace("s", labelled(enforce="restricted")), Level.OK, id="a restricted namespace"
        ),
        pytest.param(cluster_facts.namespace("s", labelled(warn="restricted")), Level.BROKEN, id="one that only warns"),
        pytest.param(cluster_facts.namespace("s", None), Level.BROKEN, id="no namespace"),
        pytest.param(cluster_facts.policed("s", [SOME, CLOSED]), Level.OK, id="closed by default"),
        pytest.param(cluster_facts.policed("s", [OPEN]), Level.BROKEN, id="a policy that opens everything"),
        pytest.param(cluster_facts.policed("s", [SOME]), Level.BROKEN, id="a policy for some pods only"),
        pytest.param(cluster_facts.policed("s", []), Level.BROKEN, id="no policy"),
        pytest.param(cluster_facts.enforced(STOPPED), Level.OK, id="policies that stop everything"),
        pytest.param(cluster_facts.enforced(LATE), Level.WARNING, id="policies that come late"),
        pytest.param(cluster_facts.enforced(HALF), Level.BROKEN, id="policies that stop one way only"),
    ],
)
def test_what_a_fact_means(finding: Finding, level: Level) -> None:
    assert finding.level is level
    assert bool(finding.remedy) is (level is not Level.OK)


def test_parts_that_are_not_available_are_broken_and_half_of_them_a_warning() -> None:
    found = cluster_facts.parts([deployment("gateway", available=1), deployment("controller", available=0)])
    assert [one.level for one in found] == [Level.WARNING, Level.BROKEN]
    assert [one.said for one in cluster_facts.parts([])] == ["it is not deployed"] * 2


def test_an_installation_is_found_by_what_its_controller_was_told() -> None:
    told = {"ROLLCAGE_SANDBOX_NAMESPACE": "cages", "ROLLCAGE_LEASE": "my-controller"}
    found = cluster_facts.installation(
        [deployment("gateway", available=1), deployment("controller", available=1, **told)]
    )
    assert found is not None
    assert (found.sandboxes, found.lease_namespace, found.lease, found.image) == (
        "cages",
        "rollcage",
        "my-controller",
        "service:1",
    )
    assert cluster_facts.installation([deployment("gateway", available=1)]) is None


def test_environments_tell_why_they_are_not_ready() -> None:
    condition = {"type": "Ready", "status": "False", "reason": "ImagePull"}
    found = cluster_facts.environments([{"metadata": {"name": "small"}, "status": {"conditions": [condition]}}])
    assert (found.level, found.said) == (Level.WARNING, "not ready: small (ImagePull)")


async def test_what_may_not_be_looked_at_is_said_and_not_the_end() -> None:
    async def forbidden() -> Finding:
        raise SandboxRejected("leases are forbidden to you")

    found = await cluster.looked("leader", forbidden())
    assert (found.check, found.level) == ("leader", Level.WARNING)
    assert "forbidden to you" in found.said


def test_what_the_chart_installs_is_found_in_order() -> None:
    # The plain manifests are rendered from the chart, so this is what an installation looks like.
    text = (Path(__file__).parents[3] / "manifests/rollcage.yaml").read_text()
    objects = [one for one in yaml.safe_load_all(text) if one]
    kinds = {kind: [one for one in objects if one["kind"] == kind] for kind in ("Deployment", "NetworkPolicy")}
    where = cluster_facts.installation(kinds["Deployment"])
    assert where is not None
    (home,) = (one for one in objects if one["kind"] == "Namespace" and one["metadata"]["name"] == where.sandboxes)
    policies = [one for one in kinds["NetworkPolicy"] if one["metadata"]["namespace"] == where.sandboxes]
    found = [cluster_facts.namespace(where.sandboxes, home), cluster_facts.policed(where.sandboxes, policies)]
    assert {one.level for one in found} == {Level.OK}
    assert {one.check for one in cluster_facts.parts(kinds["Deployment"]) if one.said != "it is not deployed"} == {
        "gateway",
        "controller",
    }
