"""
See every ended sandbox through to its verdict, however long the store is away.

What an end means is for ``deaths``; here it is only made sure that it is said,
once, before the sandbox may be removed.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rollcage.controller.troubles import Reason
from rollcage.core.endings import EndCause, Ending
from rollcage.core.errors import StoreUnavailable
from rollcage.sandboxes.source import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollcage.controller.deaths import Deaths
    from rollcage.controller.hands import Hands
    from rollcage.controller.view import View
    from rollcage.core.environment import Environment
    from rollcage.sandboxes.source import Sandbox

_FIRST_REST: Final = 0.2
_LONGEST_REST: Final = 5.0


class Settling:
    """The sandboxes that have ended; *environment* looks one up by its name."""

    def __init__(
        self, *, deaths: Deaths, hands: Hands, view: View, environment: Callable[[str], Environment | None]
    ) -> None:
        self._deaths = deaths
        self._hands = hands
        self._view = view
        self._environment = environment
        self._settled: set[str] = set()

    @property
    def removable(self) -> set[str]:
        """Ended sandboxes that are still there and of which all is said."""
        self._settled &= self._view.seen.keys()
        return self._settled - self._view.going.keys()

    def end(self, sandbox: Sandbox, *, started: bool) -> None:
        """Settle a sandbox that ended; one that had not *started* is a failed start."""
        self._hands.do(self._settle(sandbox, started=started))

    def lose(self, sandbox: Sandbox) -> None:
        """Take a sandbox for dead whose node fell silent and which does not answer itself."""
        ending = Ending(EndCause.NODE_LOST, message=f"{sandbox.node} is silent, and so is the sandbox")
        self.end(replace(sandbox, phase=Phase.ENDED, ending=ending), started=True)

    async def _settle(self, sandbox: Sandbox, *, started: bool) -> None:
        if not started and sandbox.ending:
            message = f"{sandbox.ending.cause}: {sandbox.ending.message}"
            self._hands.troubles.failed(sandbox.environment, Reason.START_FAILED, message, time.monotonic())
        rest = _FIRST_REST
        while True:
            try:
                await self._deaths.settle(sandbox, self._environment(sandbox.environment))
                break
            except StoreUnavailable:
                # A verdict is owed; until it is written the pod stays where it is.
                await asyncio.sleep(rest)
                rest = min(2 * rest, _LONGEST_REST)
        if sandbox.name in self._view.seen:
            self._settled.add(sandbox.name)
