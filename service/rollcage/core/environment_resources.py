"""
What a sandbox gets of its node: a workspace, memory, CPU time, disk.
"""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from rollcage.core.environment_pod import mountable
from rollcage.core.environment_types import Cpu, Part, Path, Size, amount


class WorkspaceSource(StrEnum):
    """What the workspace is at the start."""

    EMPTY = "empty"
    IMAGE = "image"


class Workspace(Part):
    """The directory that calls work in."""

    source: WorkspaceSource = WorkspaceSource.EMPTY
    """empty: a fresh volume that hides what the image has there. image: the image's own directory, as it is."""
    path: Path = "/workspace"
    """Where it is."""
    size: Size = "1Gi"
    """How much an empty workspace may hold; more than that ends the sandbox, by the model's own doing."""

    @field_validator("path")
    @classmethod
    def _path_is_free(cls, path: str) -> str:
        return mountable(path)


class Requests(Part):
    """What the scheduler sets aside."""

    cpu: Cpu = "100m"
    """CPU time."""
    memory: Size | None = None
    """Memory; the limit unless given. Less than the limit lets a node run out, and that masks rollouts."""
    ephemeral_storage: Annotated[Size | None, Field(alias="ephemeral-storage")] = None
    """Disk; the limit unless given."""


class Limits(Part):
    """What a sandbox may use at most."""

    cpu: Cpu = "1"
    """CPU time; more is throttled."""
    memory: Size = "1Gi"
    """Memory, files in /dev/shm included; more ends a process or the sandbox, by the model's own doing."""
    ephemeral_storage: Annotated[Size, Field(alias="ephemeral-storage")] = "2Gi"
    """Disk: the workspace, other empty directories, and whatever is written over the image. More ends the sandbox."""


class Resources(Part):
    """What a sandbox gets of its node."""

    requests: Requests = Requests()
    """What the scheduler sets aside."""
    limits: Limits = Limits()
    """What a sandbox may use at most."""

    @model_validator(mode="after")
    def _requests_within_limits(self) -> Self:
        for name in ("cpu", "memory", "ephemeral_storage"):
            request: str | None = getattr(self.requests, name)
            limit: str = getattr(self.limits, name)
            if request is not None and amount(request) > amount(limit):
                raise ValueError(f"the request of {name.replace('_', '-')} is above its limit")
        return self
