"""
The fields of an environment, as its YAML has them under ``spec``.

Field by field the same as the custom resource's schema in ``manifests/crd``,
descriptions and defaults included; a test walks both. Rules over several
fields stand here as validators and there as CEL.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from rollcage.core.environment_grading import Grading
from rollcage.core.environment_pod import Pod
from rollcage.core.environment_resources import Resources, Workspace, WorkspaceSource
from rollcage.core.environment_types import Part, Path, Reference, amount, whole

Text = Annotated[str, Field(min_length=1, max_length=16_384)]
Seconds = Annotated[int, whole(1, 86_400)]


class Delivery(StrEnum):
    """How the toolserver gets into a pod."""

    AUTO = "auto"
    IMAGE_VOLUME = "image-volume"
    INIT_CONTAINER = "init-container"
    BAKED = "baked"


class PullPolicy(StrEnum):
    """When the node fetches the image, in Kubernetes' words."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class Order(StrEnum):
    """How calls of one rollout that arrive together are run."""

    PARALLEL = "parallel"
    SERIAL = "serial"


class Egress(StrEnum):
    """What a sandbox may reach. So far there is one answer."""

    NONE = "none"


class BuiltinTool(StrEnum):
    """The tools that every toolserver has."""

    SHELL = "shell"
    SESSION_CREATE = "session_create"
    SESSION_RUN = "session_run"
    SESSION_INTERRUPT = "session_interrupt"
    SESSION_CLOSE = "session_close"
    READ_FILE = "read_file"
    WRITE_FILE = "write_file"
    LIST = "list"
    SEARCH = "search"


class Toolserver(Part):
    """How the toolserver gets into the sandbox."""

    delivery: Delivery = Delivery.AUTO
    """baked (in the image at /opt/rollcage/toolserver), image-volume, init-container, or auto: one of the last two."""
    image: Reference | None = None
    """Another toolserver image than the installation's own."""


class Setup(Part):
    """What is done once in each sandbox, before any rollout has it."""

    commands: Annotated[tuple[Text, ...], Field(max_length=64)] = ()
    """Shell commands, one after the other; one that fails makes the environment fail, with its output."""
    timeout_seconds: Seconds = 600
    """How long all of them may take together."""


class CustomTool(Part):
    """An executable of the image, offered as a tool."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64)]
    """Its name, as the model calls it."""
    description: Annotated[str, Field(max_length=16_384)] = ""
    """What the model is told about it."""
    command: Annotated[tuple[Text, ...], Field(min_length=1, max_length=64)]
    """The program and its first arguments; the call's own arguments come as JSON on standard input."""
    parameters: Mapping[str, Any] = {"type": "object"}
    """The JSON schema of its arguments."""
    timeout_seconds: Seconds | None = None
    """How long a call may take; limits.defaultTimeoutSeconds unless given."""

    @field_validator("name")
    @classmethod
    def _name_is_free(cls, name: str) -> str:
        if name in set(BuiltinTool):
            raise ValueError(f"{name} is a built-in tool")
        return name


class Tools(Part):
    """What the model can call."""

    builtin: Annotated[tuple[BuiltinTool, ...], Field(max_length=16)] | None = None
    """The built-in tools that are offered; all of them unless given."""
    custom: Annotated[tuple[CustomTool, ...], Field(max_length=64)] = ()
    """Executables of the image."""
    order: Order = Order.PARALLEL
    """Whether calls of one rollout that arrive together run together or one after the other."""

    @field_validator("custom")
    @classmethod
    def _names_are_unique(cls, custom: tuple[CustomTool, ...]) -> tuple[CustomTool, ...]:
        if len({tool.name for tool in custom}) < len(custom):
            raise ValueError("two custom tools have the same name")
        return custom


class CallLimits(Part):
    """Bounds of one call."""

    default_timeout_seconds: Seconds = 60
    """How long a call may take that does not say; never more than maxTimeoutSeconds."""
    max_timeout_seconds: Seconds = 540
    """How long any call may take; trainers give up after ten minutes."""
    output_bytes: Annotated[int, whole(256, 524_288)] = 65_536
    """How much output the model is shown; the middle of more is left out."""
    concurrent_calls: Annotated[int, whole(1, 64)] = 16
    """How many calls of one rollout run at once."""
    waiting_calls: Annotated[int, whole(0, 1024)] = 64
    """How many more may wait."""


class Budgets(Part):
    """Bounds of one rollout and of its sandbox."""

    calls: Annotated[int, whole(1, 100_000)] = 1000
    """How many calls a rollout may make."""
    wall_seconds: Annotated[int, whole(1, 604_800)] = 7200
    """How long a rollout may take from its first call."""
    idle_seconds: Annotated[int, whole(1, 604_800)] = 1800
    """After how long without a call a rollout counts as abandoned."""
    lifetime_seconds: Annotated[int, whole(60, 2_592_000)] = 86_400
    """How long a sandbox lives, idle time included. One that could not last another wallSeconds is not given out."""

    @model_validator(mode="after")
    def _life_is_long_enough(self) -> Self:
        if self.lifetime_seconds <= self.wall_seconds:
            raise ValueError("lifetimeSeconds must be above wallSeconds")
        return self


class Pool(Part):
    """How many sandboxes there are."""

    warm: Annotated[int, whole(0, 100_000)] = 0
    """How many sandboxes are kept ready for rollouts to come; 0 makes each when it is asked for."""
    max_pods: Annotated[int, whole(1, 100_000)] = 1000
    """How many sandboxes there may be in all, ready, starting and in use."""
    scale_to_zero_after_seconds: Annotated[int, whole(60, 2_592_000)] | None = None
    """After how long without a new rollout none is kept ready, until the next one comes; never unless given."""

    @model_validator(mode="after")
    def _warm_within_all(self) -> Self:
        if self.warm > self.max_pods:
            raise ValueError("warm must not be above maxPods")
        return self


class EnvironmentSpec(Part):
    """A recipe for sandboxes."""

    description: Annotated[str, Field(max_length=1024)] = ""
    """What it is for, for people."""
    image: Reference
    """The container image; any will do."""
    image_pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    """When the node fetches the image."""
    toolserver: Toolserver = Toolserver()
    """How the toolserver gets into the sandbox."""
    workspace: Workspace = Workspace()
    """The directory that calls work in."""
    workdir: Path | None = None
    """Where calls begin; workspace.path unless given."""
    resources: Resources = Resources()
    """What a sandbox gets of its node."""
    shell: Annotated[tuple[Text, ...], Field(min_length=1, max_length=16)] | None = None
    """What runs a command, such as [/bin/bash, -c]; found in the image unless given."""
    env: Annotated[Mapping[str, Annotated[str, Field(max_length=32_768)]], Field(max_length=256)] = {}
    """Variables for every command, over the image's own. The model can read them."""
    setup: Setup = Setup()
    """What is done once in each sandbox, before any rollout has it."""
    tools: Tools = Tools()
    """What the model can call."""
    limits: CallLimits = CallLimits()
    """Bounds of one call."""
    budgets: Budgets = Budgets()
    """Bounds of one rollout and of its sandbox."""
    pool: Pool = Pool()
    """How many sandboxes there are."""
    egress: Egress = Egress.NONE
    """What a sandbox may reach: nothing."""
    grading: Grading | None = None
    """How rollouts are graded; not at all unless given."""
    pod: Pod = Pod()
    """What only Kubernetes needs; a laptop ignores it."""

    @field_validator("env")
    @classmethod
    def _variables_have_names(cls, env: Mapping[str, str]) -> Mapping[str, str]:
        for name, value in env.items():
            if not name or "=" in name or "\0" in name + value:
                raise ValueError(f"{name!r} cannot be set")
            if name.startswith(("ROLLCAGE_", "KUBERNETES_")):
                raise ValueError("names that begin with ROLLCAGE_ or KUBERNETES_ are taken")
        return env

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Self:
        disk = self.resources.limits.ephemeral_storage
        if self.workspace.source is WorkspaceSource.EMPTY and amount(self.workspace.size) > amount(disk):
            raise ValueError("workspace.size must not be above resources.limits.ephemeral-storage")
        if self.workspace.path in {volume.mount_path for volume in self.pod.volumes}:
            raise ValueError("a volume is mounted over the workspace")
        for tool in self.tools.custom:
            if (tool.timeout_seconds or 0) > self.limits.max_timeout_seconds:
                raise ValueError(f"the timeout of {tool.name} is above limits.maxTimeoutSeconds")
        return self
