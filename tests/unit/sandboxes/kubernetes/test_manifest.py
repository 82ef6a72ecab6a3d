from __future__ import annotations

import json
from typing import Any

import pytest

from rollcage.core.environment import template_fingerprint, toolserver_config
from rollcage.sandboxes.kubernetes.manifest import pod_manifest
from support.environments import environment

TOOLSERVER_MOUNT = {"name": "toolserver", "mountPath": "/rollcage", "readOnly": True}
KEYS = {"k1": "A6EHv_POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg"}


def manifest(*, image_volumes: bool = True, **changes: Any) -> dict[str, Any]:
    return pod_manifest(
        environment(**changes),
        name="sbx-1",
        namespace="sandboxes",
        keys=KEYS,
        toolserver_image="rollcage/toolserver:1",
        image_volumes=image_volumes,
    )


def spec(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = manifest(**changes)["spec"]
    return found


def container(**changes: Any) -> dict[str, Any]:
    (found,) = spec(**changes)["containers"]
    assert isinstance(found, dict)
    return found


def variable(name: str, **changes: Any) -> str:
    """Return a variable as the container sees it: the kubelet halves what the manifest doubles."""
    (value,) = (v["value"] for v in container(**changes)["env"] if v["name"] == name)
    assert isinstance(value, str)
    return value.replace("$$", "$")


def test_every_container_meets_the_restricted_standard() -> None:
    pod = spec(image_volumes=False)

    assert pod["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    for one in [*pod["containers"], *pod["initContainers"]]:
        assert one["securityContext"]["allowPrivilegeEscalation"] is False
        assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_pod_has_no_token_no_service_links_no_names_and_no_second_life() -> None:
    pod = spec()

    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert pod["restartPolicy"] == "Never"
    assert (pod["dnsPolicy"], pod["dnsConfig"]) == ("None", {"nameservers": ["127.0.0.1"]})


def test_a_pod_lives_as_long_as_its_environment_says() -> None:
    assert spec()["activeDeadlineSeconds"] == 3600


def test_a_pod_has_no_probes() -> None:
    assert not {"livenessProbe", "readinessProbe", "startupProbe"} & container().keys()


def test_autoscalers_leave_a_pod_alone() -> None:
    assert manifest()["metadata"]["annotations"] == {
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
        "karpenter.sh/do-not-disrupt": "true",
    }


def test_labels_say_what_a_pod_is_from_the_start() -> None:
    labels = manifest(pod={"labels": {"team": "a"}})["metadata"]["labels"]

    assert len(labels.pop("rollcage.dev/template")) == len(template_fingerprint(environment()))
    assert labels == {
        "team": "a",
        "rollcage.dev/environment": "small",
        "rollcage.dev/egress": "none",
        "app.kubernetes.io/managed-by": "rollcage",
        "app.kubernetes.io/name": "sandbox",
        "app.kubernetes.io/part-of": "rollcage",
    }


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"keys": {"k2": KEYS["k1"]}}, id="other keys"),
        pytest.param({"toolserver_image": "rollcage/toolserver:2"}, id="another toolserver"),
        pytest.param({"image_volumes": False}, id="another way in for the toolserver"),
        pytest.param({"environment": environment(image="busybox:2")}, id="another recipe"),
    ],
)
def test_a_pod_that_would_be_made_differently_now_has_another_template(change: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "environment": environment(),
        "name": "sbx-1",
        "namespace": "sandboxes",
        "keys": KEYS,
        "toolserver_image": "rollcage/toolserver:1",
        "image_volumes": True,
    }

    def template(**arguments: Any) -> str:
        label: str = pod_manifest(**arguments)["metadata"]["labels"]["rollcage.dev/template"]
        return label

    assert template(**usual) == template(**{**usual, "name": "sbx-2"})
    assert template(**usual) != template(**{**usual, **change})


def test_the_toolserver_is_told_its_name_its_keys_and_its_configuration() -> None:
    assert variable("ROLLCAGE_SANDBOX") == "sbx-1"
    assert json.loads(variable("ROLLCAGE_KEYS")) == KEYS
    config = json.loads(variable("ROLLCAGE_CONFIG"))
    assert {**config, "env": {}} == toolserver_config(environment())


def test_what_the_kubelet_would_expand_is_doubled() -> None:
    commands = ["echo $$ $(ROLLCAGE_SANDBOX) $HOME"]

    (written,) = (v["value"] for v in container(setup={"commands": commands})["env"] if v["name"] == "ROLLCAGE_CONFIG")

    assert "echo $$$$ $$(ROLLCAGE_SANDBOX) $$HOME" in written


def test_git_works_in_a_volume_that_belongs_to_root() -> None:
    env = json.loads(variable("ROLLCAGE_CONFIG", env={"A": "b"}))["env"]

    assert env == {
        "A": "b",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


@pytest.mark.parametrize(
    "changes",
    [{"env": {"GIT_CONFIG_COUNT": "0"}}, {"workspace": {"source": "image"}}],
    ids=["the environment configures git itself", "the workspace is the image's"],
)
def test_git_is_otherwise_left_alone(changes: dict[str, Any]) -> None:
    assert "GIT_CONFIG_KEY_0" not in variable("ROLLCAGE_CONFIG", **changes)


class TestTheToolserver:
    def test_comes_as_an_image_volume_where_there_are_any(self) -> None:
        assert {
            "name": "toolserver",
            "image": {"reference": "rollcage/toolserver:1", "pullPolicy": "IfNotPresent"},
        } in spec()["volumes"]
        assert container()["command"] == ["/rollcage/toolserver", "serve"]
        assert TOOLSERVER_MOUNT in container()["volumeMounts"]
        assert "initContainers" not in spec()

    def test_else_comes_by_an_init_container(self) -> None:
        pod = spec(image_volumes=False)

        (installer,) = pod["initContainers"]
        assert installer["command"] == ["/toolserver", "install", "/rollcage/toolserver"]
        assert installer["image"] == "rollcage/toolserver:1"
        assert {"name": "toolserver", "emptyDir": {"sizeLimit": "64Mi"}} in pod["volumes"]
        assert pod["containers"][0]["command"] == ["/rollcage/toolserver", "serve"]
        assert TOOLSERVER_MOUNT in pod["containers"][0]["volumeMounts"]

    def test_may_be_in_the_image_already(self) -> None:
        pod = spec(toolserver={"delivery": "baked"})

        assert pod["containers"][0]["command"] == ["/opt/rollcage/toolserver", "serve"]
        assert [volume["name"] for volume in pod["volumes"]] == ["workspace"]

    @pytest.mark.parametrize("image_volumes", [True, False])
    def test_comes_as_the_environment_says_whatever_the_cluster_can(self, *, image_volumes: bool) -> None:
        declared = {"delivery": "init-container", "image": "mine:2"}

        (installer,) = spec(image_volumes=image_volumes, toolserver=declared)["initContainers"]

        assert installer["image"] == "mine:2"


class TestResources:
    def test_requests_are_the_limits_unless_given(self) -> None:
        resources = container(resources={"limits": {"memory": "512Mi"}})["resources"]

        assert resources == {
            "requests": {"cpu": "100m", "memory": "512Mi", "ephemeral-storage": "2Gi"},
            "limits": {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "2Gi"},
        }

    def test_the_workspace_has_a_size(self) -> None:
        assert {"name": "workspace", "emptyDir": {"sizeLimit": "32Mi"}} in spec()["volumes"]
        assert {"name": "workspace", "mountPath": "/workspace"} in container()["volumeMounts"]

    def test_a_workspace_of_the_image_is_not_covered(self) -> None:
        pod = spec(workspace={"source": "image", "path": "/testbed"})

        assert "workspace" not in [volume["name"] for volume in pod["volumes"]]

    def test_a_read_only_root_has_a_place_for_temporary_files(self) -> None:
        pod = spec(pod={"readOnlyRoot": True})

        assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
        assert {"name": "tmp", "mountPath": "/tmp"} in pod["containers"][0]["volumeMounts"]  # noqa: S108


def test_placement_is_taken_over_as_it_is() -> None:
    pod = spec(
        pod={
            "runtimeClassName": "gvisor",
            "priorityClassName": "low",
            "nodeSelector": {"pool": "sandboxes"},
            "tolerations": [{"key": "sandboxes", "operator": "Exists", "effect": "NoSchedule"}],
            "imagePullSecrets": ["registry"],
        }
    )

    assert pod["runtimeClassName"] == "gvisor"
    assert pod["priorityClassName"] == "low"
    assert pod["nodeSelector"] == {"pool": "sandboxes"}
    assert pod["tolerations"] == [{"key": "sandboxes", "operator": "Exists", "effect": "NoSchedule"}]
    assert pod["imagePullSecrets"] == [{"name": "registry"}]


def test_placement_that_is_not_given_is_left_out() -> None:
    assert not {"runtimeClassName", "priorityClassName", "nodeSelector", "tolerations"} & spec().keys()


VOLUMES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "a ConfigMap": ({"configMap": "c"}, {"configMap": {"name": "c"}}, True),
    "a Secret": ({"secret": "s"}, {"secret": {"secretName": "s"}}, True),
    "a claim": ({"claim": "p"}, {"persistentVolumeClaim": {"claimName": "p", "readOnly": True}}, True),
    "an empty directory": ({"emptyDir": {"size": "8Mi"}}, {"emptyDir": {"sizeLimit": "8Mi"}}, False),
}


@pytest.mark.parametrize(("declared", "written", "read_only"), VOLUMES.values(), ids=VOLUMES.keys())
def test_a_volume_is_mounted(declared: dict[str, Any], written: dict[str, Any], *, read_only: bool) -> None:
    pod = spec(pod={"volumes": [{"name": "more", "mountPath": "/more", **declared}]})

    assert {"name": "more", **written} in pod["volumes"]
    assert {"name": "more", "mountPath": "/more", "readOnly": read_only} in pod["containers"][0]["volumeMounts"]


def test_the_same_recipe_gives_the_same_pod() -> None:
    assert manifest() == manifest()
