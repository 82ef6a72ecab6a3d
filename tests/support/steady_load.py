"""
Rollouts that go on while something is done to the service, each call counting on what the one before has left.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.installed import Trainer

COUNT = "echo x >> /workspace/n; wc -l < /workspace/n"
# Often enough that every connection is used while its gateway still tells callers to leave it.
PAUSE = 0.5


def new_trace() -> str:
    """Return the name of a rollout that nobody has had."""
    return f"trace_{uuid.uuid4().hex}"


async def steady(trainer: Trainer, base: str, trace: str, done: asyncio.Event) -> int:
    """Let a rollout call until *done*, and return how often; a single call that fails is an error."""
    number = 0
    while not done.is_set():
        number += 1
        status, answer = await trainer.call(base, trace, f"call_{number}", COUNT)
        assert (status, answer.get("output", "").strip()) == (200, str(number)), answer
        await asyncio.sleep(PAUSE)
    return number


async def one_after_the_other(trainer: Trainer, base: str, done: asyncio.Event, *, calls: int) -> int:
    """Let new rollouts begin and end until *done*, and return how many there were."""
    number = 0
    while not done.is_set():
        trace, over = new_trace(), asyncio.Event()
        asyncio.get_running_loop().call_later(calls * PAUSE, over.set)
        await steady(trainer, base, trace, over)
        await trainer.finish(base, trace)
        number += 1
    return number
