"""The gateway over real use cases, a real Redis and real toolservers, asked in process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.rollouts.conftest import binary, stage
from rollcage.gateway.app import gateway
from support.gateways import Caller, all_is_well, parts

if TYPE_CHECKING:
    from support.stage import Stage

__all__ = ["ask", "binary", "stage"]


@pytest.fixture
def ask(stage: Stage) -> Caller:
    made = parts(
        stage.use_cases,
        records=stage.store.rollouts,
        pools=stage.store.pools,
        environments={stage.environment.name: stage.environment},
    )
    return Caller(gateway(made, checks=all_is_well))
