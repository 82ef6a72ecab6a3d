"""
What a deployed process is told, by its environment variables.
"""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from pathlib import Path  # noqa: TC003 - pydantic reads it at run time
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, field_validator

from rollcage.store.settings import Settings as StoreSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "ROLLCAGE_"


def _paths(given: str | tuple[Path, ...]) -> tuple[Path, ...] | tuple[str, ...]:
    return tuple(filter(None, given.split(":"))) if isinstance(given, str) else given


class Settings(BaseModel):
    """Each field is a variable: ``redis_url`` is ``ROLLCAGE_REDIS_URL``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    redis_url: str
    redis_ca: Path | None = None
    """The certificate that signed the server's; those that everybody trusts unless given."""
    keyring: Path
    """The file with the signing keys."""
    store_namespace: str = "rollcage"
    retention_days: float = Field(default=7, gt=0)
    """How long a rollout's record is kept after its last change."""

    @field_validator("redis_ca")
    @classmethod
    def _certificates_are_for_tls(cls, ca: Path | None, info: ValidationInfo) -> Path | None:
        # Whoever gives one expects encryption, and would not be told that there is none.
        if ca and not info.data.get("redis_url", "").startswith("rediss://"):
            raise ValueError("is given, but ROLLCAGE_REDIS_URL does not begin with rediss://")
        return ca

    @property
    def store(self) -> StoreSettings:
        """Where the store is, and how long it keeps."""
        retention = timedelta(days=self.retention_days)
        return StoreSettings(self.redis_url, ca=self.redis_ca, namespace=self.store_namespace, retention=retention)


class ControllerSettings(Settings):
    """What a controller on a cluster is told."""

    sandbox_namespace: str
    """Where sandboxes run, and where environments are read from."""
    lease_namespace: str
    lease: str = "rollcage-controller"
    toolserver_image: str
    identity: str = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    metrics_port: int = 0
    """Where Prometheus finds the metrics; nowhere if 0."""
    kubeconfig: Path | None = None
    """For a controller outside its cluster."""


class GatewaySettings(Settings):
    """What a gateway is told."""

    tenants: Path
    """The file with the tenants."""
    graders: Annotated[tuple[Path, ...], BeforeValidator(_paths)] = ()
    """Directories in which teams' grading functions are found, separated by colons."""
    archive: str = ""
    """Where ended rollouts are written to: a directory, or a URL that fsspec knows; nowhere if empty."""
    traces: bool = False
    """Whether calls are traced; where to is said by the standard ``OTEL_*`` variables."""
    host: str = "0.0.0.0"  # noqa: S104 - a service in a pod
    port: int = 8080


S = TypeVar("S", bound=Settings)


def settings_from(kind: type[S], variables: Mapping[str, str]) -> S:
    """Read the settings, or raise ValidationError."""
    given = {name.removeprefix(PREFIX).lower(): text for name, text in variables.items() if name.startswith(PREFIX)}
    return kind.model_validate(given)
