"""The scripted fake keeps the promise of every source."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from contract.sandboxes.suite import SourceContract
from rollcage.core.endings import EndCause, Ending
from rollcage.sandboxes.fake.clock import LoopClock
from rollcage.sandboxes.fake.fate import Fate, always
from rollcage.sandboxes.fake.source import FakeSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from rollcage.sandboxes.source import Sandbox, SandboxSource


class TestFake(SourceContract):
    patience = 5.0
    lag = 0.0

    @pytest.fixture
    def open_source(self) -> Callable[[], AbstractAsyncContextManager[SandboxSource]]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[SandboxSource]:
            yield FakeSource(LoopClock(), always(Fate(starts_after=0.01)), lag=self.lag)

        return opened

    async def end_by_itself(self, source: SandboxSource, sandbox: Sandbox) -> int:
        assert isinstance(source, FakeSource)
        source.end(sandbox.name, Ending(EndCause.EXITED, exit_code=3))
        return 3


class TestFakeWithALaggingWatch(TestFake):
    lag = 0.02
