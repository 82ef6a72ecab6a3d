"""
What an environment says about its pods, and a laptop has no use for: place, rights, volumes.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

from pydantic import Field, field_validator, model_validator

from rollcage.core.environment_types import (
    DNS_LABEL,
    LABEL_KEY,
    Flag,
    LabelValue,
    ObjectName,
    Part,
    Path,
    Size,
    matches,
    whole,
)

# Where the toolserver is mounted in a pod; nothing else may be.
TOOLSERVER_MOUNT: Final = "/rollcage"
_OUR_VOLUMES: Final = frozenset({"workspace", "toolserver", "tmp"})
_OUR_PREFIXES: Final = ("rollcage.dev/", "app.kubernetes.io/")
_SYSTEM: Final = ("/proc", "/sys", "/dev", TOOLSERVER_MOUNT)


class TolerationOperator(StrEnum):
    """How a toleration compares."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to a pod."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Toleration(Part):
    """A taint that the pods bear, as Kubernetes writes it."""

    key: Annotated[str, Field(max_length=317)] | None = None
    """The taint's key; without one, with Exists, every taint."""
    operator: TolerationOperator = TolerationOperator.EQUAL
    """Exists or Equal."""
    value: Annotated[str, Field(max_length=63)] | None = None
    """The taint's value, for Equal."""
    effect: TaintEffect | None = None
    """Only this effect; without one, all of them."""
    toleration_seconds: Annotated[int, whole(0, 86_400)] | None = None
    """How long a NoExecute taint is borne; without it, for ever."""


class EmptyDir(Part):
    """Room that is empty at the start and goes with the pod."""

    size: Size
    """How much it may hold; more than that ends the sandbox, by the model's own doing."""


class Volume(Part):
    """Something else to mount: a ConfigMap, a Secret or a claim, read-only, or an empty directory."""

    name: Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
    """Its name, unique in the environment."""
    mount_path: Path
    """Where the sandbox sees it."""
    config_map: ObjectName | None = None
    """The ConfigMap of this name."""
    secret: ObjectName | None = None
    """The Secret of this name. The model can read it: mount nothing that it must not know."""
    claim: ObjectName | None = None
    """The PersistentVolumeClaim of this name."""
    empty_dir: EmptyDir | None = None
    """An empty directory."""

    @model_validator(mode="after")
    def _one_content(self) -> Self:
        if [self.config_map, self.secret, self.claim, self.empty_dir].count(None) != 3:  # noqa: PLR2004
            raise ValueError("a volume has exactly one of configMap, secret, claim and emptyDir")
        return self

    @field_validator("name")
    @classmethod
    def _name_is_free(cls, name: str) -> str:
        if name in _OUR_VOLUMES:
            raise ValueError(f"{', '.join(sorted(_OUR_VOLUMES))} are names of Rollcage's own volumes")
        return name

    @field_validator("mount_path")
    @classmethod
    def _path_is_free(cls, path: str) -> str:
        return mountable(path)


class Pod(Part):
    """What only Kubernetes needs; a laptop ignores it."""

    run_as_user: Annotated[int, whole(1, 2**31 - 1)] = 1000
    """The user id of everything in the sandbox, never root."""
    run_as_group: Annotated[int, whole(1, 2**31 - 1)] = 1000
    """Its group id."""
    read_only_root: Flag = False
    """Keep the image's files as they are; only the workspace, /tmp and emptyDir volumes can be written."""
    runtime_class_name: ObjectName | None = None
    """The RuntimeClass, such as gvisor or kata."""
    priority_class_name: ObjectName | None = None
    """The PriorityClass."""
    node_selector: Annotated[Mapping[str, LabelValue], Field(max_length=32)] = {}
    """Only nodes with these labels."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=32)] = ()
    """Taints that the pods bear."""
    image_pull_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=16)] = ()
    """Secrets of type dockerconfigjson in the sandboxes' namespace. The kubelet uses them; the sandbox sees none."""
    labels: Annotated[Mapping[str, LabelValue], Field(max_length=32)] = {}
    """More labels for the pods; rollcage.dev/ and app.kubernetes.io/ are taken."""
    annotations: Annotated[Mapping[str, Annotated[str, Field(max_length=16_384)]], Field(max_length=32)] = {}
    """More annotations for the pods; rollcage.dev/ and app.kubernetes.io/ are taken."""
    volumes: Annotated[tuple[Volume, ...], Field(max_length=16)] = ()
    """More volumes."""

    @field_validator("labels", "node_selector")
    @classmethod
    def _keys_are_keys(cls, labels: Mapping[str, str]) -> Mapping[str, str]:
        for key in labels:
            if not matches(LABEL_KEY, key):
                raise ValueError(f"{key!r} is no key of a label")
        return labels

    @field_validator("labels", "annotations")
    @classmethod
    def _keys_are_free(cls, given: Mapping[str, str]) -> Mapping[str, str]:
        for key in given:
            if key.startswith(_OUR_PREFIXES):
                raise ValueError(f"keys that begin with {' or '.join(_OUR_PREFIXES)} are taken")
        return given

    @field_validator("volumes")
    @classmethod
    def _volumes_are_apart(cls, volumes: tuple[Volume, ...]) -> tuple[Volume, ...]:
        if len({volume.name for volume in volumes}) < len(volumes):
            raise ValueError("two volumes have the same name")
        if len({volume.mount_path for volume in volumes}) < len(volumes):
            raise ValueError("two volumes have the same mountPath")
        return volumes


def mountable(path: str) -> str:
    """Return a path at which something may be mounted, else raise ValueError."""
    if {".", ".."} & set(path.split("/")):
        raise ValueError("a path has no . and no ..")
    for system in _SYSTEM:
        if path == system or path.startswith(f"{system}/"):
            raise ValueError(f"{system} is not free for mounts")
    return path
