"""
Run a part of the service until it ends or is told to.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import uvloop

from rollcage.core.errors import RollcageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


T = TypeVar("T")


def run(work: Awaitable[T]) -> T | None:
    """Do the work and return what it came to, None if it was told to stop; our own errors become exit code 1."""

    async def working() -> T:
        return await work

    try:
        with suppress(asyncio.CancelledError), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(working())
    except* RollcageError as errors:
        sys.exit("\n".join(_told(errors)))
    return None


def end_by_signals() -> None:
    """Let SIGTERM and SIGINT end this task in an orderly way; a second one does not disturb that."""
    task = asyncio.current_task()
    assert task  # noqa: S101 - called from one

    def end() -> None:
        if not task.cancelling():
            task.cancel()

    _on_signals(end)


async def told_to_stop() -> None:
    """Wait for SIGTERM or SIGINT; from now on they end nothing by themselves."""
    told = asyncio.Event()
    _on_signals(told.set)
    await told.wait()


def _on_signals(act: Callable[[], None]) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, act)


def _told(errors: BaseExceptionGroup[RollcageError]) -> list[str]:
    lines = []
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            lines += _told(error)
        else:
            lines.append(f"rollcage: {error.code}: {error}")
    return lines
