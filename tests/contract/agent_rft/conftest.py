"""The whole way of a call, over a real gateway on a real socket, a real Redis and real sandboxes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from contract.agent_rft.jobs import open_job
from integration.conftest import redis, server
from integration.rollouts.conftest import binary, stage
from rollcage.grading.desk import Desk
from rollcage.grading.workers import open_workers
from support.gateways import parts
from support.grading import graded

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from contract.agent_rft.platform import Job
    from support.stage import Stage

__all__ = ["binary", "redis", "server", "stage"]


@pytest.fixture
async def job(stage: Stage) -> AsyncIterator[Job]:
    """A job whose rollouts are graded by their final text."""
    environments = {"small": graded(grader={"kind": "text", "expected": "item.reference_answer"})}
    made = parts(stage.use_cases, records=stage.store.rollouts, pools=stage.store.pools, environments=environments)
    async with open_workers(None) as workers:
        desk = Desk(
            use_cases=stage.use_cases,
            scores=stage.store.scores,
            environments=environments,
            workers=workers,
            metrics=made.metrics,
        )
        async with open_job(replace(made, graders=desk)) as opened:
            yield opened
