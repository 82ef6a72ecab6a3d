"""
Where environments are read from, and told how they fare.

On a cluster the custom resources, on a laptop files. Whoever reads them gets
all that are valid, every time one changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from rollcage.core.environment import Environment


@dataclass(frozen=True, slots=True)
class Fare:
    """How an environment fares."""

    ready: int
    starting: int
    claimed: int
    waiting: int
    healthy: bool
    reason: str
    """One word in CamelCase: why it is healthy or not."""
    message: str


class Recipes(Protocol):
    """The environments of one installation."""

    def observe(self) -> AbstractAsyncContextManager[AsyncIterator[Mapping[str, Environment]]]:
        """Give all environments by name: at once, and again whenever one changes."""
        ...

    async def report(self, name: str, fare: Fare) -> None:
        """Say how an environment fares; one that is gone is no error."""
