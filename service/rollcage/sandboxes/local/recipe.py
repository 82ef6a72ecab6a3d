"""
What an environment asks for, as far as a laptop can give it.

Its image and everything under ``pod`` are Kubernetes' business: here the
host's own programs are the image.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from rollcage.core.environment import Environment, template_fingerprint, toolserver_config
from rollcage.core.environment_types import amount
from rollcage.sandboxes.local.limits import Limits

# Where the workspace takes all of the disk limit: what programs need to run at all.
_LEAST_TEMPORARY: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Recipe:
    """One kind of sandbox."""

    environment: str
    template: str
    config: Mapping[str, Any]
    """The toolserver's configuration."""
    workspace: str
    limits: Limits
    lifetime: float
    """Seconds."""


def recipe(environment: Environment, *, processes: int) -> Recipe:
    """Return what to make of an environment."""
    spec = environment.spec
    limits = spec.resources.limits
    workspace = int(amount(spec.workspace.size))
    return Recipe(
        environment=environment.name,
        template=template_fingerprint(environment),
        config=toolserver_config(environment),
        workspace=spec.workspace.path,
        limits=Limits(
            memory=int(amount(limits.memory)),
            workspace=workspace,
            temporary=max(_LEAST_TEMPORARY, int(amount(limits.ephemeral_storage)) - workspace),
            cpus=float(amount(limits.cpu)),
            processes=processes,
        ),
        lifetime=spec.budgets.lifetime_seconds,
    )


def config_at(made: Recipe, workspace: str) -> str:
    """Return the toolserver's configuration as JSON, for a workspace that lies somewhere else."""
    workdir = PurePosixPath(made.config["workdir"])
    if workdir.is_relative_to(made.workspace):
        workdir = workspace / workdir.relative_to(made.workspace)
    return json.dumps({**made.config, "workdir": str(workdir)})
