"""
Trace calls, or do not: then nothing of it is imported.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rollcage.core.errors import RollcageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from rollcage.gateway.exchange import App
    from rollcage.rollouts.spans import Tracer
    from rollcage.telemetry.metrics import Metrics

SERVICE: Final = "rollcage-gateway"


class TracesNotInstalled(RollcageError):
    """Traces were asked for, and what makes them is not installed."""

    code = "traces_not_installed"


@dataclass(frozen=True, slots=True)
class Tracing:
    """What follows calls, what is put around the application for it, and how it ends."""

    tracer: Tracer | None
    around: Callable[[App], App]
    _close: Callable[[], None]

    async def end(self) -> None:
        """Send what still waits, for a moment; nothing is sent afterwards."""
        # Waits for a thread, so not on the loop.
        await asyncio.to_thread(self._close)


@asynccontextmanager
async def tracing(metrics: Metrics, *, wanted: bool) -> AsyncIterator[Tracing]:
    """
    Lend what a gateway traces with.

    A server that was told to stop by a signal dies of it before it comes back,
    so whoever serves ends this before; see ``background`` in ``wiring.gateway``.
    """
    if not wanted:
        yield Tracing(None, lambda app: app, lambda: None)
        return
    try:
        from rollcage.gateway.trace_context import in_trainers_trace  # noqa: PLC0415 - an extra
        from rollcage.telemetry.traces import opened  # noqa: PLC0415 - an extra
    except ImportError as missing:
        raise TracesNotInstalled("traces need the extra: pip install 'rollcage[traces]'") from missing
    with ExitStack() as stack:
        tracer = stack.enter_context(opened(metrics, service=SERVICE))
        yield Tracing(tracer, in_trainers_trace, stack.close)
