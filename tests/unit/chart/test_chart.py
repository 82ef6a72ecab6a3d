"""
What the chart renders. That it works is for the cluster's tests.
"""

from __future__ import annotations

import json
import re

import pytest

from lab.manifests import CHART
from lab.manifests import rendered as files_of_the_chart
from rollcage.gateway.serving import Serving
from support.chart import SANDBOXES, Json, rendered

EVERYTHING = {
    "keepOnUninstall": "false",
    "gateway__ingress": '{"enabled": true, "host": "rollcage.example"}',
    "gateway__autoscaling": '{"enabled": true}',
    "monitoring__monitors__enabled": "true",
    "monitoring__rules__enabled": "true",
    "monitoring__dashboards__enabled": "true",
    "environments": '{"small": {"image": "some:image"}}',
}
CONFINED = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


@pytest.fixture
def pods() -> dict[str, Json]:
    """Return every pod that the chart can make."""
    return rendered(**EVERYTHING).pods()


def test_what_is_rendered_from_the_chart_is_up_to_date() -> None:
    stale = [path.name for path, text in files_of_the_chart().items() if not path.exists() or path.read_text() != text]

    assert not stale, "run scripts/manifests"


def test_every_pod_is_restricted_and_cannot_write_to_its_root(pods: dict[str, Json]) -> None:
    assert len(pods) == 6
    for name, pod in pods.items():
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        for container in pod["containers"]:
            assert container["securityContext"] == CONFINED, name
            assert container["resources"]["limits"]["memory"], name
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}, name


def test_no_pod_takes_the_variables_of_services_for_settings(pods: dict[str, Json]) -> None:
    assert {name for name, pod in pods.items() if pod["enableServiceLinks"]} == set()


def test_only_those_who_ask_the_api_server_have_a_token_for_it(pods: dict[str, Json]) -> None:
    with_token = {name for name, pod in pods.items() if pod.get("automountServiceAccountToken", True)}

    assert with_token == {"rollcage-controller", "rollcage-definition-apply", "rollcage-definition-remove"}


def test_this_is_all_that_anybody_may_do_to_the_api_server() -> None:
    chart = rendered(**EVERYTHING)
    rights = {
        (one["metadata"].get("namespace", ""), resource, *rule.get("resourceNames", ())): " ".join(rule["verbs"])
        for kind in ("Role", "ClusterRole")
        for one in chart.of(kind)
        for rule in one["rules"]
        for resource in rule["resources"]
        if "definition" not in one["metadata"]["name"]
    }
    of_jobs = {
        one["metadata"]["name"]: (*rule["resources"], *rule["resourceNames"], *rule["verbs"])
        for one in chart.of("ClusterRole")
        for rule in one["rules"]
        if "definition" in one["metadata"]["name"]
    }

    assert rights == {
        ("rollcage", "leases", "rollcage-controller"): "get update",
        (SANDBOXES, "pods"): "get list watch create delete patch",
        (SANDBOXES, "events"): "list",
        (SANDBOXES, "environments"): "list watch",
        (SANDBOXES, "environments/status"): "patch",
        ("default", "events"): "list",
        ("", "nodes"): "get list",
    }
    definition = ("customresourcedefinitions", "environments.rollcage.dev")
    assert of_jobs == {
        "rollcage-definition-apply": (*definition, "get", "update"),
        "rollcage-definition-remove": (*definition, "delete"),
    }


def test_every_pod_goes_to_the_nodes_that_were_chosen() -> None:
    chosen = '{"nodeSelector": {"for": "rollcage"}, "tolerations": [{"key": "for", "operator": "Exists"}]}'
    pods = rendered(**EVERYTHING, gateway=chosen, controller=chosen, redis=chosen).pods()

    assert len(pods) == 6
    assert {name for name, pod in pods.items() if pod.get("nodeSelector") != {"for": "rollcage"}} == set()
    assert {name for name, pod in pods.items() if not pod.get("tolerations")} == set()


def test_the_gateway_has_the_time_to_finish_its_calls(pods: dict[str, Json]) -> None:
    needs = (Serving().linger + Serving().drain).total_seconds()

    assert pods["rollcage-gateway"]["terminationGracePeriodSeconds"] > needs


@pytest.mark.parametrize("part", ["gateway", "controller"])
def test_both_pods_of_a_part_go_to_different_nodes_after_an_upgrade_too(pods: dict[str, Json], part: str) -> None:
    (spread,) = pods[f"rollcage-{part}"]["topologySpreadConstraints"]

    assert (spread["topologyKey"], spread["maxSkew"]) == ("kubernetes.io/hostname", 1)
    assert spread["matchLabelKeys"] == ["pod-template-hash"]


def test_sandboxes_live_under_the_strictest_standard_and_a_quota() -> None:
    labels = rendered().get("Namespace", SANDBOXES)["metadata"]["labels"]

    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    assert rendered().get("ResourceQuota", "sandboxes")["spec"]["hard"] == {"pods": "600"}


def test_metrics_and_health_are_not_shown_to_the_outside() -> None:
    (ingress,) = rendered(**EVERYTHING).of("Ingress")
    (rule,) = ingress["spec"]["rules"]

    assert {one["path"] for one in rule["http"]["paths"]} == {"/agent-rft", "/v1", "/console", "/openapi.json"}


def test_the_autoscaler_alone_says_how_many_gateways_there_are() -> None:
    assert "replicas" not in rendered(**EVERYTHING).get("Deployment", "rollcage-gateway")["spec"]
    assert rendered().get("Deployment", "rollcage-gateway")["spec"]["replicas"] == 2


def test_an_external_redis_takes_the_place_of_ours() -> None:
    chart = rendered(redis__enabled="false", redis__external='{"secret": "elsewhere"}')
    (container,) = chart.pods()["rollcage-controller"]["containers"]
    (url,) = (one for one in container["env"] if one["name"] == "ROLLCAGE_REDIS_URL")

    assert not chart.of("StatefulSet")
    assert url["valueFrom"]["secretKeyRef"] == {"name": "elsewhere", "key": "url"}


def test_calls_are_traced_only_where_a_collector_is_named() -> None:
    def told(**values: str) -> dict[str, str]:
        [container] = rendered(**values).pods()["rollcage-gateway"]["containers"]
        variables = {one["name"]: one.get("value", "") for one in container["env"]}
        return {name: value for name, value in variables.items() if name.startswith(("OTEL_", "ROLLCAGE_TRACES"))}

    assert told() == {}
    assert told(tracing='{"endpoint": "http://collector:4318", "ratio": 0.25}') == {
        "ROLLCAGE_TRACES": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
        "OTEL_TRACES_SAMPLER": "parentbased_traceidratio",
        "OTEL_TRACES_SAMPLER_ARG": "0.25",
    }


def test_an_external_redis_is_trusted_by_the_certificate_that_was_given() -> None:
    external = '{"secret": "elsewhere", "ca": {"secret": "authority", "key": "root.pem"}}'
    pods = rendered(redis__enabled="false", redis__external=external).pods()

    for part in ("gateway", "controller"):
        (container,) = pods[f"rollcage-{part}"]["containers"]
        (file,) = (one["value"] for one in container["env"] if one["name"] == "ROLLCAGE_REDIS_CA")
        (mount,) = (one for one in container["volumeMounts"] if one["name"] == "redis-ca")
        (volume,) = (one for one in pods[f"rollcage-{part}"]["volumes"] if one["name"] == "redis-ca")
        assert file == f"{mount['mountPath']}/root.pem"
        assert volume["secret"]["secretName"] == "authority"


def test_what_graders_sign_in_with_comes_out_of_a_secret() -> None:
    (container,) = rendered(gateway__envSecrets='["judge"]').pods()["rollcage-gateway"]["containers"]

    assert container["envFrom"] == [{"secretRef": {"name": "judge"}}]


def test_alerts_lead_to_where_the_runbooks_are_served() -> None:
    chart = rendered(
        monitoring__rules='{"enabled": true, "runbooks": "https://docs.example/runbooks/"}',
    )
    rules = [
        rule
        for one in chart.of("PrometheusRule")
        for group in one["spec"]["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]

    assert rules
    for rule in rules:
        assert rule["annotations"]["runbook_url"] == f"https://docs.example/runbooks/{rule['alert']}.md"


@pytest.mark.parametrize(
    ("archive", "place"),
    [('{"url": "s3://records"}', "s3://records"), ('{"claim": "records"}', "/var/lib/rollcage/archive")],
)
def test_ended_rollouts_are_written_where_it_was_said(archive: str, place: str) -> None:
    pod = rendered(archive=archive).pods()["rollcage-gateway"]
    (container,) = pod["containers"]

    assert {"name": "ROLLCAGE_ARCHIVE", "value": place} in container["env"]
    assert [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "archive"] == (
        [place] if "claim" in archive else []
    )


def test_no_password_stands_in_a_pod() -> None:
    chart = rendered(**EVERYTHING)
    secrets = [value for one in chart.of("Secret") for value in one["data"].values()]
    pods = json.dumps(chart.pods())

    assert secrets
    assert not [value for value in secrets if value in pods]


def test_the_definition_is_removed_at_the_end_only_when_asked_for(pods: dict[str, Json]) -> None:
    assert "rollcage-definition-remove" not in rendered().pods()
    assert "rollcage-definition-remove" in pods


def test_redis_volume_is_kept_unless_nothing_is() -> None:
    def policy(**settings: str) -> str:
        found: str = rendered(**settings).get("StatefulSet", "rollcage-redis")["spec"][
            "persistentVolumeClaimRetentionPolicy"
        ]["whenDeleted"]
        return found

    assert (policy(), policy(keepOnUninstall="false")) == ("Retain", "Delete")


def test_notes_show_no_secret_but_how_to_get_it() -> None:
    text = (CHART / "templates" / "NOTES.txt").read_text()

    assert "get secret" in text
    assert not re.search(r"randAlphaNum|randBytes|b64dec", text)
