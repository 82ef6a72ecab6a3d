"""A gateway that grades, over real use cases, a real Redis, real toolservers and real worker processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.rollouts.conftest import binary, stage
from rollcage.grading.workers import WorkerSettings, open_workers
from support.grading import Grader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.stage import Stage

__all__ = ["binary", "grader", "stage"]


@pytest.fixture
async def grader(stage: Stage) -> AsyncIterator[Grader]:
    async with open_workers(WorkerSettings(paths=(Path(__file__).parent,))) as workers:
        yield Grader(stage, workers)
