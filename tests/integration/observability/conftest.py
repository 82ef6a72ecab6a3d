"""A stage whose gateway counts, and the ground that all integration tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from integration.controller.conftest import store
from integration.rollouts.conftest import binary, stage
from rollcage.rollouts.usecases import open_use_cases
from rollcage.telemetry.metrics import Metrics
from rollcage.telemetry.witness import MetricsWitness
from support.counts import Counts
from support.stage import BRISK, ENVIRONMENT
from support.toolserver import SIGNER

if TYPE_CHECKING:
    from support.stage import Stage

__all__ = ["binary", "counts", "metrics", "stage", "store"]


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics(CollectorRegistry())
    made.know([ENVIRONMENT])
    return made


@pytest.fixture
async def counts(stage: Stage, metrics: Metrics) -> Counts:
    """What the stage's gateway counts from now on."""
    witness = MetricsWitness(metrics, custom_tools=lambda _: ())
    opened = open_use_cases(stage.store, SIGNER, witness=witness, patience=BRISK)
    stage.use_cases = await stage.gateways.enter_async_context(opened)
    return Counts(metrics)
