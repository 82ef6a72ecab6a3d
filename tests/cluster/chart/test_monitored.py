"""The monitors and rules of the chart, as an API server takes them and as a real Prometheus makes use of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from kubernetes import client

from lab.manifests import CHART
from support.beside_the_release import WATCHED
from support.installed import ENVIRONMENT, NAME, NAMESPACE, WARM
from support.inventory import get
from support.prometheus import scraping_all

if TYPE_CHECKING:
    from pathlib import Path

    from support.installed import Installed

GATEWAY, CONTROLLER = f"{NAME}-gateway", f"{NAME}-controller"


@dataclass(frozen=True)
class Target:
    """Something to scrape, and the labels that the operator gives to all that comes from there."""

    address: str
    job: str
    pod: str

    def static(self) -> dict[str, Any]:
        return {"targets": [self.address], "labels": {"namespace": NAMESPACE, "job": self.job, "pod": self.pod}}


def test_the_api_server_takes_monitors_and_rules_as_the_operator_defines_them(release: Installed) -> None:
    assert {kind: {one["metadata"]["name"] for one in _objects(release, kind)} for kind in WATCHED} == {
        "servicemonitors": {GATEWAY},
        "podmonitors": {CONTROLLER},
        "prometheusrules": {f"{NAME}-alerts", f"{NAME}-recording"},
    }
    # Nothing was dropped on the way: a field that a definition does not know would be.
    rules = {
        one["metadata"]["name"].removeprefix(f"{NAME}-"): one["spec"] for one in _objects(release, "prometheusrules")
    }
    for name, spec in rules.items():
        text = (CHART / "rules" / f"{name}.yaml").read_text()
        served = text.replace("runbook: docs/runbooks/", "runbook_url: https://docs.example/runbooks/")
        assert spec == yaml.safe_load(served)
    (monitor,) = _objects(release, "servicemonitors")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "http", "path": "/metrics", "interval": "15s"}]


async def test_what_the_monitors_select_is_scraped_and_every_rule_finds_its_figures(
    release: Installed, tmp_path: Path
) -> None:
    targets = [*_by_service(release), *_by_pod(release)]
    assert sorted(one.job for one in targets) == sorted([GATEWAY, GATEWAY, CONTROLLER, CONTROLLER])
    files = []
    for one in _objects(release, "prometheusrules"):
        files.append(tmp_path / f"{one['metadata']['name']}.yaml")
        files[-1].write_text(yaml.safe_dump(one["spec"]))

    with scraping_all([one.static() for one in targets], rules=files, home=tmp_path) as prometheus:
        await prometheus.until(f"count(up == 1) == {len(targets)}")
        await prometheus.until(
            f'rollcage:pool:sandboxes{{namespace="{NAMESPACE}", environment="{ENVIRONMENT}", state="wanted"}} == {WARM}'
        )
        # One leads, whoever it is; and both sides of the service reach Redis.
        await prometheus.until("sum(rollcage_leader) == 1")
        await prometheus.until(f"count(rollcage_store_up == 1) == {len(targets)}")
        rules = await prometheus.rules()
        assert len(rules) == sum(len(group["rules"]) for one in files for group in _groups(one))
        assert {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")} == {}
        assert {rule["health"] for rule in rules} <= {"ok", "unknown"}


def test_a_dashboard_is_there_for_grafanas_sidecar(release: Installed) -> None:
    found = release.core.list_namespaced_config_map(NAMESPACE, label_selector="grafana_dashboard=1").items

    assert {name for one in found for name in one.data} == {file.name for file in (CHART / "dashboards").iterdir()}


def _objects(release: Installed, kind: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(release.core, f"/apis/monitoring.coreos.com/v1/namespaces/{NAMESPACE}/{kind}")[
        "items"
    ]
    return found


def _groups(file: Path) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(file.read_text())["groups"]
    return groups


def _selector(monitor: dict[str, Any]) -> str:
    return ",".join(f"{label}={value}" for label, value in monitor["spec"]["selector"]["matchLabels"].items())


def _by_service(release: Installed) -> list[Target]:
    """Go from a ServiceMonitor to its Services, to their endpoints of the port that it names, as the operator does."""
    (monitor,) = _objects(release, "servicemonitors")
    (endpoint,) = monitor["spec"]["endpoints"]
    slices: Any = client.DiscoveryV1Api(release.core.api_client)
    found = []
    for service in release.core.list_namespaced_service(NAMESPACE, label_selector=_selector(monitor)).items:
        name = service.metadata.name
        of_service = slices.list_namespaced_endpoint_slice(
            NAMESPACE, label_selector=f"kubernetes.io/service-name={name}"
        )
        for one in of_service.items:
            (port,) = (port.port for port in one.ports if port.name == endpoint["port"])
            found += [Target(f"{each.addresses[0]}:{port}", name, each.target_ref.name) for each in one.endpoints]
    return found


def _by_pod(release: Installed) -> list[Target]:
    """Go from a PodMonitor to its pods, to their port of the name that it has."""
    (monitor,) = _objects(release, "podmonitors")
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    found = []
    for pod in release.core.list_namespaced_pod(NAMESPACE, label_selector=_selector(monitor)).items:
        (port,) = (
            port.container_port
            for container in pod.spec.containers
            for port in container.ports or ()
            if port.name == endpoint["port"]
        )
        found.append(Target(f"{pod.status.pod_ip}:{port}", monitor["metadata"]["name"], pod.metadata.name))
    return found
