"""
Environments that stand in files, or are given once and for all.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

from rollcage.core.environment import Environment
from rollcage.sandboxes.recipes import Fare


class GivenRecipes:
    """Environments that somebody has read already; *replace* gives others."""

    def __init__(self, environments: Mapping[str, Environment]) -> None:
        self._environments = dict(environments)
        self._changed = asyncio.Condition()
        self.fares: dict[str, Fare] = {}
        """How each environment fares, as last told."""

    async def replace(self, environments: Mapping[str, Environment]) -> None:
        """Give other environments instead."""
        async with self._changed:
            self._environments = dict(environments)
            self._changed.notify_all()

    @asynccontextmanager
    async def observe(self) -> AsyncIterator[AsyncIterator[Mapping[str, Environment]]]:
        """Give the environments, and again when they are replaced."""
        async with aclosing(self._sets()) as sets:
            yield sets

    async def report(self, name: str, fare: Fare) -> None:
        """Keep it for whoever asks."""
        self.fares[name] = fare

    async def _sets(self) -> AsyncGenerator[Mapping[str, Environment]]:
        while True:
            given = self._environments
            yield dict(given)
            async with self._changed:
                await self._changed.wait_for(lambda given=given: self._environments is not given)  # type: ignore[misc]
