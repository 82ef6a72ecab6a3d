"""
What the leader knows of its sandboxes: asked for, seen, greeted, going away.

It only remembers. The watch lags the leader's own writes, so a sandbox that
was asked for counts from the moment of asking, under the name it will have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rollcage.sandboxes.source import Gone, Phase, Sandbox, Seen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollcage.sandboxes.source import Change

# Long enough for a late watch event, and for an answer that got lost. What is asked for again is asked for
# under the same name, so neither can make two of one.
EXPECTATION_SECONDS: Final = 120.0
ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A sandbox that was asked for. Times are monotonic."""

    environment: str
    template: str
    since: float
    """When it was first asked for: its start counts from here."""
    latest: float
    """When it was last asked for."""
    answered: bool = False
    """Whether the source has said yes; without an answer it may exist all the same."""


class View:
    """Everything known since this leader began to look."""

    def __init__(self) -> None:
        self.asked: dict[str, Asked] = {}
        self.seen: dict[str, Sandbox] = {}
        self.greeted: set[str] = set()
        """Sandboxes whose toolserver has said that it is ready."""
        self.going: dict[str, float] = {}
        """Sandboxes whose deletion was asked for, and when."""

    def ask(self, name: str, environment: str, template: str, now: float) -> None:
        """Remember that a sandbox is being asked for, before it is."""
        before = self.asked.get(name)
        self.asked[name] = Asked(environment, template, before.since if before else now, now)

    def answer(self, name: str) -> None:
        """Remember that the source has said yes."""
        if name in self.asked:
            self.asked[name] = replace(self.asked[name], answered=True)

    def refuse(self, name: str) -> None:
        """Forget a sandbox that will not be."""
        self.asked.pop(name, None)

    def overdue(self, now: float) -> Iterator[tuple[str, Asked]]:
        """Return what was asked for and neither confirmed nor seen for too long: to be asked for again."""
        for name, asked in tuple(self.asked.items()):
            patience = EXPECTATION_SECONDS if asked.answered else ANSWER_SECONDS
            if name not in self.seen and now - asked.latest > patience:
                yield name, asked

    def change(self, change: Change) -> Sandbox | None:
        """Take in what the watch shows; return the sandbox if this is the news of its end."""
        if isinstance(change, Seen):
            before = self.seen.get(change.sandbox.name)
            self.seen[change.sandbox.name] = change.sandbox
            ended = change.sandbox.phase is Phase.ENDED and (before is None or before.phase is not Phase.ENDED)
            return change.sandbox if ended else None
        if isinstance(change, Gone):
            before = self.seen.pop(change.last.name, None)
            self.asked.pop(change.last.name, None)
            self.greeted.discard(change.last.name)
            self.going.pop(change.last.name, None)
            return change.last if before is None or before.phase is not Phase.ENDED else None
        return None

    def started_in(self, name: str, now: float) -> float | None:
        """Return how long a sandbox took from asking to now, if this leader asked for it."""
        asked = self.asked.get(name)
        return now - asked.since if asked else None

    def starting(self) -> Iterator[str]:
        """Return the sandboxes that are on their way, seen or not."""
        for name in self.asked:
            if name not in self.seen:
                yield name
        for name, sandbox in self.seen.items():
            if sandbox.phase is not Phase.ENDED and name not in self.greeted and name not in self.going:
                yield name

    def environments(self) -> set[str]:
        """Return the environments that anything is known of."""
        asked = {one.environment for one in self.asked.values()}
        return asked | {one.environment for one in self.seen.values()}
