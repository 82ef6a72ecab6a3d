"""Local process trees keep the promise of every source, in every tier that this machine has."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest

from contract.sandboxes.suite import SourceContract
from rollcage.sandboxes.local.tiers import BEST_FIRST, Tier
from support.local_sandboxes import OWN_ROOT, LocalSandbox, need, opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from rollcage.sandboxes.source import Sandbox, SandboxSource

# $PPID is the toolserver; nothing else of this machine is touched, whatever the tier.
LOWER_ITS_LIMITS = "[ $(cat /proc/$PPID/comm) = toolserver ] && prlimit --pid $PPID --nofile=3:3"
KILL_IT = "[ $(cat /proc/$PPID/comm) = toolserver ] && kill -9 $PPID"


class TestLocal(SourceContract):
    @pytest.fixture(params=BEST_FIRST)
    def tier(self, request: pytest.FixtureRequest, toolserver: Path) -> Tier:
        return need(request.param, toolserver)

    @pytest.fixture
    def open_source(self, tier: Tier, toolserver: Path) -> Callable[[], AbstractAsyncContextManager[SandboxSource]]:
        @asynccontextmanager
        async def source() -> AsyncIterator[SandboxSource]:
            async with opened(tier, toolserver) as made:
                yield made

        return source

    async def end_by_itself(self, source: SandboxSource, sandbox: Sandbox) -> int:
        assert source
        driver = LocalSandbox(sandbox)
        if sandbox.image in {f"host:{tier}" for tier in OWN_ROOT}:
            await driver.run(LOWER_ITS_LIMITS)
            return 86
        # Not PID 1: it can be killed from inside.
        with suppress(OSError, HTTPException):
            await driver.run(KILL_IT)
        return 128 + 9
