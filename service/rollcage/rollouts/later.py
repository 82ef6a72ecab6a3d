"""
Do what nobody waits for, such as counting, a moment later.

Whoever has just got an answer often asks the next thing at once, and would wait
for whatever is done right after the answer.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

_A_MOMENT: Final = 0.02

# So many are done without waiting any longer: more at a time would hold others up.
_MANY: Final = 32


class Later:
    """Work that waits, in its order."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self._timer: asyncio.TimerHandle | None = None

    def do(self, work: Callable[..., None], *given: Any) -> None:
        """Do *work* in a moment; it must not raise."""
        self._waiting.append((work, given))
        if len(self._waiting) >= _MANY:
            self.now()
        elif self._timer is None:
            self._timer = self._loop.call_later(_A_MOMENT, self.now)

    def now(self) -> None:
        """Do all that waits."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        for work, given in waiting:
            work(*given)
