"""Ask for calls without waiting for them, as a connection does, where a test waits all the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from rollcage.rollouts.actions import Action, Answer
    from rollcage.rollouts.usecases import UseCases


class Heard:
    """An asker who notes how it heard; its answer can be waited for."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.plainly = False
        self._known: Answer | None = None
        self._waiting: asyncio.Task[Answer] | None = None

    def known(self, answer: Answer) -> None:
        assert self._known is None
        self._known = answer

    def recorded(self) -> None:
        assert self._known
        self.plainly = True
        if not self.answer.cancelled():
            self.answer.set_result(self._known)

    def otherwise(self, answer: Coroutine[Any, Any, Answer]) -> None:
        assert self._waiting is None
        self._waiting = asyncio.create_task(answer)
        self._waiting.add_done_callback(self._waited)

    def _waited(self, task: asyncio.Task[Answer]) -> None:
        if self.answer.cancelled() or task.cancelled():
            self.answer.cancel()
        elif error := task.exception():
            self.answer.set_exception(error)
        else:
            self.answer.set_result(task.result())


class Started:
    """Use cases whose calls are started instead of awaited; whoever cancels leaves them running."""

    def __init__(self, real: UseCases) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def act(self, action: Action) -> Answer:
        asker = Heard()
        self._real.start(action, asker)
        return await asker.answer
