"""
What a source of sandboxes promises.

The controller's only view of where sandboxes run. A source makes, shows and
removes them; how many there should be, and what an ending means for a rollout,
is decided elsewhere. Every source passes ``tests/contract/sandboxes``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from rollcage.core.errors import RollcageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager
    from datetime import datetime

    from rollcage.core.endings import Ending
    from rollcage.core.environment import Environment
    from rollcage.core.verdict_facts import Shield


class SourceUnavailable(RollcageError):
    """The source did not answer, or not in time; what was asked may have happened. Asking again is safe."""

    code = "source_unavailable"


class SourceThrottled(RollcageError):
    """The source is too busy; nothing happened. It may be asked again after *retry_after* seconds."""

    code = "source_throttled"

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class QuotaExceeded(RollcageError):
    """There may be no more sandboxes; nothing was made. Room comes when others end or somebody raises the quota."""

    code = "quota_exceeded"


class SandboxRejected(RollcageError):
    """The source will not make or change this sandbox, however often it is asked; nothing happened."""

    code = "sandbox_rejected"


class Phase(StrEnum):
    """How far a sandbox has come. It only ever moves forward."""

    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"


class HoldCause(StrEnum):
    """Why a starting sandbox gets no further."""

    UNSCHEDULABLE = "unschedulable"
    IMAGE_PULL = "image_pull"
    START_ERROR = "start_error"


@dataclass(frozen=True, slots=True)
class Hold:
    """What a starting sandbox waits for."""

    cause: HoldCause
    message: str


@dataclass(frozen=True, slots=True)
class Sandbox:
    """One sandbox as its source sees it now."""

    name: str
    """Unique for ever, chosen by whoever asked for it; the audience of its tokens."""
    uid: str
    """Tells two sandboxes apart that were given the same name by mistake."""
    environment: str
    template: str
    """The fingerprint of the recipe it was made from."""
    phase: Phase
    created: datetime
    address: str | None = None
    """``http://host:port`` or ``unix:/path`` once the toolserver can be reached there."""
    node: str | None = None
    image: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    hold: Hold | None = None
    ending: Ending | None = None
    node_silent: bool = False
    """Its node has stopped reporting. The sandbox may be gone, or only the node's agent; whoever calls it finds out."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A sandbox is there, new or changed."""

    sandbox: Sandbox


@dataclass(frozen=True, slots=True)
class Gone:
    """A sandbox is no longer there; *last* is what was last seen of it, with the ending if one was told."""

    last: Sandbox


@dataclass(frozen=True, slots=True)
class Synced:
    """Everything that there is has been seen; what a caller still remembers beyond that is gone."""


Change = Seen | Gone | Synced


class SandboxSource(Protocol):
    """Makes, shows and removes sandboxes."""

    def template(self, environment: Environment) -> str:
        """Return the fingerprint that a sandbox made now would have: of the recipe and of what this source adds."""
        ...

    def shield(self, environment: Environment) -> Shield:
        """Say what keeps signals of the model's from the toolserver in a sandbox of this environment."""
        ...

    async def create(self, name: str, environment: Environment) -> None:
        """
        Ask for a sandbox.

        Asking again under the same name changes nothing: the answer to the
        first request may have been lost. Raises one of the errors above.
        """

    async def delete(self, name: str, *, uid: str) -> None:
        """Remove a sandbox, at once and for good; one that is gone already is no error."""

    async def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Add labels to a sandbox, for people and for recovery; one that is gone is no error."""

    def observe(self) -> AbstractAsyncContextManager[AsyncIterator[Change]]:
        """Watch all sandboxes of this source: first every one there is, then ``Synced``, then what changes."""

    async def evidence(self, sandbox: Sandbox) -> Mapping[str, Any]:
        """Return what is still known about a sandbox's end beyond its ending, as JSON; less is no error."""
        ...
