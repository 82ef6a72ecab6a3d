"""The Environment resource on a real API server: what it refuses, what it fills in, how it scales."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from kubernetes import client

from lab.places import ROOT
from rollcage.core.environment import Environment
from support.environments import MISTAKES, environment, resource
from support.kube import Namespace, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from lab.kind import Cluster

CRD = ROOT / "manifests" / "crd" / "environments.rollcage.dev.yaml"
KIND = {"group": "rollcage.dev", "version": "v1alpha1", "plural": "environments"}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class Environments:
    """The environments of one namespace, as ``kubectl`` treats them."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace.name
        self.api: Any = client.CustomObjectsApi(namespace.core.api_client)

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        # kubectl asks for strictness too; without it, unknown fields would silently be dropped.
        made: dict[str, Any] = self.api.create_namespaced_custom_object(
            namespace=self.namespace, body=body, field_validation="Strict", **KIND
        )
        return made

    def call(self, verb: str, name: str, *body: Any) -> dict[str, Any]:
        method: Callable[..., dict[str, Any]] = getattr(self.api, verb)
        bodies = {"body": body[0]} if body else {}
        return method(namespace=self.namespace, name=name, **KIND, **bodies)


@pytest.fixture(scope="module")
def environments(cluster: Cluster, namespace: Namespace) -> Environments:
    cluster.apply(CRD.read_text())
    definitions: Any = client.ApiextensionsV1Api(namespace.core.api_client)

    def established() -> bool:
        found = definitions.read_custom_resource_definition("environments.rollcage.dev")
        return any(c.type == "Established" and c.status == "True" for c in found.status.conditions or [])

    wait_for("the definition to be established", established)
    return Environments(namespace)


@pytest.fixture
def made(environments: Environments) -> str:
    name = f"env-{uuid.uuid4().hex[:8]}"
    environments.create(resource(name, pool={"warm": 2, "maxPods": 5}))
    return name


@pytest.mark.parametrize(("mistake", "where"), MISTAKES.values(), ids=MISTAKES.keys())
def test_the_api_server_refuses_what_the_model_refuses(
    environments: Environments, mistake: dict[str, Any], where: str
) -> None:
    with pytest.raises(client.ApiException) as refusal:
        environments.create(resource("mistaken", **mistake))

    assert refusal.value.status in {400, 422}
    assert where in json.loads(str(refusal.value.body))["message"]


def test_the_documented_example_is_accepted(environments: Environments) -> None:
    example = yaml.safe_load((ROOT / "docs" / "environments.md").read_text().split("```yaml\n")[1].split("```")[0])

    # Its cores are a plain number, as in a pod.
    assert environments.create(example)["spec"]["resources"]["limits"]["cpu"] == 2


def test_a_name_too_long_for_a_label_is_refused(environments: Environments) -> None:
    with pytest.raises(client.ApiException, match="must not be longer than 63"):
        environments.create(resource("a" * 64))


def test_two_custom_tools_of_one_name_are_refused(environments: Environments) -> None:
    tool = {"name": "lint", "command": ["/opt/lint"]}

    with pytest.raises(client.ApiException, match="Duplicate value"):
        environments.create(resource("twice", tools={"custom": [tool, tool]}))


def test_the_api_server_fills_in_what_the_model_fills_in(environments: Environments) -> None:
    smallest = {**resource("smallest"), "spec": {"image": "x:1"}}

    stored = environments.create(smallest)["spec"]

    assert stored["pool"] == {"warm": 0, "maxPods": 1000}
    spec = Environment.from_resource(smallest).spec
    assert stored == _without_the_empty(spec.model_dump(mode="json", by_alias=True, exclude_none=True))


def _without_the_empty(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out empty lists and mappings: to the resource they are the same as missing."""
    kept = {k: _without_the_empty(v) if isinstance(v, dict) else v for k, v in value.items()}
    return {k: v for k, v in kept.items() if v not in ([], {})}


def test_a_stored_environment_reads_as_the_one_that_was_sent(environments: Environments) -> None:
    everything: dict[str, Any] = {
        "tools": {
            "builtin": ["shell"],
            "custom": [{"name": "lint", "command": ["/l"], "parameters": {"type": "object", "x": {"y": 1}}}],
        },
        "pod": {
            "labels": {"team": "a"},
            "tolerations": [{"key": "k", "operator": "Exists"}],
            "volumes": [{"name": "data", "mountPath": "/data", "configMap": "fixtures"}],
        },
        "env": {"A": "b"},
        "grading": {"grader": {"kind": "function", "function": "graders.swe:score", "options": {"strict": True}}},
    }

    stored = environments.create(resource("everything", **everything))

    assert Environment.from_resource(stored) == environment("everything", **everything)


def test_a_null_means_the_default(environments: Environments) -> None:
    stored = environments.create(resource("nulls", pool={"warm": None}, shell=None))

    assert stored["spec"]["pool"]["warm"] == 0
    assert "shell" not in stored["spec"]


class TestScale:
    def test_shows_the_warm_pool(self, environments: Environments, made: str) -> None:
        environments.call("patch_namespaced_custom_object_status", made, {"status": {"ready": 1}})

        scale = environments.call("get_namespaced_custom_object_scale", made)

        assert (scale["spec"]["replicas"], scale["status"]["replicas"]) == (2, 1)

    def test_resizes_the_warm_pool(self, environments: Environments, made: str) -> None:
        environments.call("patch_namespaced_custom_object_scale", made, {"spec": {"replicas": 0}})

        assert environments.call("get_namespaced_custom_object", made)["spec"]["pool"]["warm"] == 0

    def test_is_refused_beyond_the_bound(self, environments: Environments, made: str) -> None:
        with pytest.raises(client.ApiException, match="warm must not be above maxPods"):
            environments.call("patch_namespaced_custom_object_scale", made, {"spec": {"replicas": 6}})


class TestStatus:
    STATUS = "patch_namespaced_custom_object_status"

    def test_is_written_apart_from_the_spec(self, environments: Environments, made: str) -> None:
        before = environments.call("get_namespaced_custom_object", made)
        condition = {
            "type": "Ready",
            "status": "False",
            "reason": "ImagePull",
            "message": "not found",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"ready": 1, "starting": 2, "claimed": 3, "waiting": 4, "conditions": [condition]}

        after = environments.call(self.STATUS, made, {"status": status, "spec": {"image": "other"}})

        assert after["status"] == status
        assert after["spec"] == before["spec"]
        assert after["metadata"]["generation"] == before["metadata"]["generation"]

    def test_is_checked_too(self, environments: Environments, made: str) -> None:
        with pytest.raises(client.ApiException, match=r"status\.ready"):
            environments.call(self.STATUS, made, {"status": {"ready": -1}})

    def test_shows_in_a_table(self, environments: Environments, namespace: Namespace, made: str) -> None:
        environments.call(self.STATUS, made, {"status": {"ready": 1, "claimed": 3}})

        api = namespace.core.api_client
        path = f"/apis/rollcage.dev/v1alpha1/namespaces/{namespace.name}/environments/{made}"
        request = api.param_serialize("GET", path, header_params={"Accept": TABLE}, auth_settings=["BearerToken"])
        table = json.loads(api.call_api(*request).read())

        names = [column["name"] for column in table["columnDefinitions"]]
        row = dict(zip(names, table["rows"][0]["cells"], strict=True))
        assert row.items() >= {"Name": made, "Warm": 2, "Ready": 1, "Claimed": 3}.items()
        assert {"Starting", "Waiting", "Healthy", "Reason", "Image", "Age"} <= row.keys()


def test_it_has_a_short_name(environments: Environments, namespace: Namespace) -> None:
    assert environments
    found: Any = client.ApiextensionsV1Api(namespace.core.api_client).read_custom_resource_definition(
        "environments.rollcage.dev"
    )

    assert found.spec.names.short_names == ["env"]
