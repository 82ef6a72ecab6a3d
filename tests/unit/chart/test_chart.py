"""
What the chart renders. That it works is for the cluster's tests.
"""

from __future__ import annotations

import json
import re

import pytest
import yaml

from lab.manifests import CHART, template
from lab.manifests import rendered as files_of_the_chart
from lab.talk import LabError
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


def test_no_pod_takes_the_variables_of_services_for_settings(pods: dict[str, Json]) -> None:
    assert {name for name, pod in pods.items() if pod["enableServiceLinks"]} == set()


def test_only_those_who_ask_the_api_server_have_a_token_for_it(pods: dict[str, Json]) -> None:
    with_token = {name for name, pod in pods.items() if pod.get("automountServiceAccountToken", True)}

    assert with_token == {"rollcage-controller", "rollcage-definition-apply", "rollcage-definition-remove"}


def test_nobody_may_read_secrets_or_do_whatever_they_like() -> None:
    rules = [
        rule for kind in ("Role", "ClusterRole") for one in rendered(**EVERYTHING).of(kind) for rule in one["rules"]
    ]

    assert rules
    assert not [rule for rule in rules if "*" in rule["verbs"] + rule["resources"] or "secrets" in rule["resources"]]


def test_the_gateway_has_the_time_to_finish_its_calls(pods: dict[str, Json]) -> None:
    needs = (Serving().linger + Serving().drain).total_seconds()

    assert pods["rollcage-gateway"]["terminationGracePeriodSeconds"] > needs


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


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("replicas=1", "replicas"),
        ("gateway.replica=3", "replica"),
        ("gateway.ingress.hosts={a}", "hosts"),
        ("redis.persistence.class=fast", "class"),
        ("signing.key=k2", "key"),
        ("gateway.replicas=0", "replicas"),
        ("sandboxes.namespace=Not_A_Name", "namespace"),
        ("environments.e.tools=none", "image"),
        ("signing.signs=k2", "k2"),
        ("sandboxes.namespace=rollcage", "a namespace of their own"),
    ],
)
def test_values_that_nobody_reads_or_that_make_no_sense_are_refused(setting: str, told: str) -> None:
    with pytest.raises(LabError, match=told):
        template(f"--set={setting}")


def test_the_schema_knows_every_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())

    assert _known(schema) == _told(values)


def test_notes_show_no_secret_but_how_to_get_it() -> None:
    text = (CHART / "templates" / "NOTES.txt").read_text()

    assert "get secret" in text
    assert not re.search(r"randAlphaNum|randBytes|b64dec", text)


def _known(schema: Json, path: str = "") -> set[str]:
    found = set()
    for name, part in schema.get("properties", {}).items():
        if name != "global" and "additionalProperties" in part and part["additionalProperties"] is False:
            found |= _known(part, f"{path}{name}.")
        elif name != "global":
            found.add(f"{path}{name}")
    return found


def _told(values: Json, path: str = "") -> set[str]:
    found = set()
    for name, value in values.items():
        whole = f"{path}{name}"
        if isinstance(value, dict) and value and not whole.endswith(("resources", "labels")):
            found |= _told(value, f"{whole}.")
        else:
            found.add(whole)
    return found
