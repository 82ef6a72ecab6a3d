"""
Write the pod of a sandbox.

One pure function; a golden table of tests holds it. Every pod passes the Pod
Security standard ``restricted`` and holds nothing secret: public keys, the
sandbox's own name, the environment's configuration.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.environment import template_fingerprint, toolserver_config
from rollcage.core.environment_pod import TOOLSERVER_MOUNT
from rollcage.core.environment_resources import WorkspaceSource
from rollcage.core.environment_spec import Delivery, Egress
from rollcage.sandboxes.kubernetes import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollcage.core.environment import Environment
    from rollcage.core.environment_pod import Volume
    from rollcage.core.environment_spec import EnvironmentSpec

Manifest = dict[str, Any]

# The toolserver needs at most two seconds to end; a sandbox that is deleted has nothing more to say.
GRACE_SECONDS: Final = 3
TMP_SIZE: Final = "256Mi"

_RESTRICTED: Final[Manifest] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
# Copying a few megabytes; never more than what the sandbox itself asks for.
_INSTALLER_RESOURCES: Final[Manifest] = {
    "requests": {"cpu": "10m", "memory": "16Mi", "ephemeral-storage": "16Mi"},
    "limits": {"cpu": "1", "memory": "64Mi", "ephemeral-storage": "64Mi"},
}
# A claim writes nothing to the API server, so what protects a claimed pod must stand there from the start.
_STAY: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}


def pod_manifest(
    environment: Environment,
    *,
    name: str,
    namespace: str,
    keys: Mapping[str, str],
    toolserver_image: str,
    image_volumes: bool,
) -> Manifest:
    """
    Write the pod of a new sandbox.

    *keys* are the public keys that its toolserver trusts, *image_volumes*
    whether the cluster can mount images, for environments that leave the
    choice to us.
    """
    spec = environment.spec
    delivery = chosen_delivery(spec, image_volumes=image_volumes)
    image = spec.toolserver.image or toolserver_image
    # A pod that knows other keys, or runs another toolserver, is not what would be made now.
    beside = {"keys": dict(keys), "toolserver": image, "delivery": delivery.value}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {**spec.pod.labels, **_labels(environment, beside)},
            "annotations": {**spec.pod.annotations, **_STAY},
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "activeDeadlineSeconds": spec.budgets.lifetime_seconds,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": spec.pod.run_as_user,
                "runAsGroup": spec.pod.run_as_group,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            **_name_resolution(spec),
            **_placement(spec),
            **_installer(delivery, image),
            "containers": [_container(environment, delivery, name=name, keys=keys)],
            "volumes": _volumes(spec, delivery, image),
        },
    }


def chosen_delivery(spec: EnvironmentSpec, *, image_volumes: bool) -> Delivery:
    """Decide how the toolserver gets in, where the environment leaves that open."""
    if spec.toolserver.delivery is not Delivery.AUTO:
        return spec.toolserver.delivery
    return Delivery.IMAGE_VOLUME if image_volumes else Delivery.INIT_CONTAINER


def _labels(environment: Environment, beside: Manifest) -> dict[str, str]:
    return {
        names.ENVIRONMENT_LABEL: environment.name,
        names.TEMPLATE_LABEL: template_fingerprint(environment, beside=beside),
        names.EGRESS_LABEL: environment.spec.egress.value,
        names.MANAGED_BY_LABEL: names.MANAGED_BY,
        "app.kubernetes.io/name": "sandbox",
        "app.kubernetes.io/part-of": "rollcage",
    }


def _name_resolution(spec: EnvironmentSpec) -> Manifest:
    if spec.egress is not Egress.NONE:
        return {}
    # Where nothing can be reached no name needs an address. Asking nobody fails at once; asking a name
    # server behind a network policy hangs, and one that is reachable after all carries data out.
    return {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]}}


def _placement(spec: EnvironmentSpec) -> Manifest:
    pod = spec.pod
    chosen: Manifest = {
        "runtimeClassName": pod.runtime_class_name,
        "priorityClassName": pod.priority_class_name,
        "nodeSelector": dict(pod.node_selector),
        "tolerations": [t.model_dump(mode="json", by_alias=True, exclude_none=True) for t in pod.tolerations],
        "imagePullSecrets": [{"name": secret} for secret in pod.image_pull_secrets],
    }
    return {field: value for field, value in chosen.items() if value}


def _container(environment: Environment, delivery: Delivery, *, name: str, keys: Mapping[str, str]) -> Manifest:
    spec = environment.spec
    binary = names.BAKED_TOOLSERVER if delivery is Delivery.BAKED else f"{TOOLSERVER_MOUNT}/toolserver"
    return {
        "name": names.CONTAINER,
        "image": spec.image,
        "imagePullPolicy": spec.image_pull_policy.value,
        "command": [binary, "serve"],
        "env": [
            {"name": "ROLLCAGE_SANDBOX", "value": name},
            {"name": "ROLLCAGE_LISTEN", "value": f":{names.PORT}"},
            {"name": "ROLLCAGE_KEYS", "value": _literal(_compact(dict(keys)))},
            {"name": "ROLLCAGE_CONFIG", "value": _literal(_compact(_config(environment)))},
        ],
        "ports": [{"name": "toolserver", "containerPort": names.PORT}],
        "resources": _resources(spec),
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": spec.pod.read_only_root},
        "volumeMounts": _mounts(spec, delivery),
    }


def _config(environment: Environment) -> Manifest:
    config = toolserver_config(environment)
    if environment.spec.workspace.source is WorkspaceSource.EMPTY and "GIT_CONFIG_COUNT" not in config["env"]:
        # The volume belongs to root and is open to everyone; git refuses to work in a directory of somebody else's.
        trust = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        config["env"] = {**trust, **config["env"]}
    return config


def _resources(spec: EnvironmentSpec) -> Manifest:
    limits = spec.resources.limits
    requests = spec.resources.requests
    return {
        "requests": {
            "cpu": requests.cpu,
            "memory": requests.memory or limits.memory,
            "ephemeral-storage": requests.ephemeral_storage or limits.ephemeral_storage,
        },
        "limits": limits.model_dump(by_alias=True),
    }


def _installer(delivery: Delivery, image: str) -> Manifest:
    if delivery is not Delivery.INIT_CONTAINER:
        return {}
    return {
        "initContainers": [
            {
                "name": names.INSTALLER,
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["/toolserver", "install", f"{TOOLSERVER_MOUNT}/toolserver"],
                "resources": _INSTALLER_RESOURCES,
                "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
                "volumeMounts": [{"name": "toolserver", "mountPath": TOOLSERVER_MOUNT}],
            }
        ]
    }


def _volumes(spec: EnvironmentSpec, delivery: Delivery, image: str) -> list[Manifest]:
    volumes = [{"name": volume.name, **_content(volume)} for volume in spec.pod.volumes]
    if spec.workspace.source is WorkspaceSource.EMPTY:
        volumes.append({"name": "workspace", "emptyDir": {"sizeLimit": spec.workspace.size}})
    if spec.pod.read_only_root:
        volumes.append({"name": "tmp", "emptyDir": {"sizeLimit": TMP_SIZE}})
    if delivery is Delivery.IMAGE_VOLUME:
        volumes.append({"name": "toolserver", "image": {"reference": image, "pullPolicy": "IfNotPresent"}})
    if delivery is Delivery.INIT_CONTAINER:
        volumes.append({"name": "toolserver", "emptyDir": {"sizeLimit": "64Mi"}})
    return volumes


def _content(volume: Volume) -> Manifest:
    if volume.config_map is not None:
        return {"configMap": {"name": volume.config_map}}
    if volume.secret is not None:
        return {"secret": {"secretName": volume.secret}}
    if volume.claim is not None:
        return {"persistentVolumeClaim": {"claimName": volume.claim, "readOnly": True}}
    return {"emptyDir": {"sizeLimit": volume.empty_dir.size if volume.empty_dir else None}}


def _mounts(spec: EnvironmentSpec, delivery: Delivery) -> list[Manifest]:
    mounts: list[Manifest] = [
        {"name": volume.name, "mountPath": volume.mount_path, "readOnly": volume.empty_dir is None}
        for volume in spec.pod.volumes
    ]
    if spec.workspace.source is WorkspaceSource.EMPTY:
        mounts.append({"name": "workspace", "mountPath": spec.workspace.path})
    if spec.pod.read_only_root:
        mounts.append({"name": "tmp", "mountPath": "/tmp"})  # noqa: S108 - a directory of the pod's, not ours
    if delivery in {Delivery.IMAGE_VOLUME, Delivery.INIT_CONTAINER}:
        mounts.append({"name": "toolserver", "mountPath": TOOLSERVER_MOUNT, "readOnly": True})
    return mounts


def _compact(value: Manifest) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _literal(text: str) -> str:
    # The kubelet expands $(NAME) and halves $$ in values of variables; a shell command may hold either.
    return text.replace("$", "$$")
