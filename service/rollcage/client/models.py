"""
What the service answers, as values.

Fields that this release does not know are ignored, so that an older client
goes on against a newer service.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

T = TypeVar("T")


class Answer(BaseModel):
    """What every answer has in common: it cannot be changed."""

    model_config = ConfigDict(frozen=True)


class Call(Answer):
    """What a call came to: a text for the model, data for programs, facts for the record."""

    call_id: str
    outcome: str
    """ok, failed, timed_out, malformed or refused."""
    output: str
    data: Mapping[str, Any]
    facts: Mapping[str, Any]
    replayed: bool
    ended: bool

    @property
    def ok(self) -> bool:
        """Whether the tool did what it was asked."""
        return self.outcome == "ok"


class Verdict(Answer):
    """What the trainer may do with a rollout, why, and who said so."""

    word: str
    """trainable, masked or abandoned."""
    cause: str
    by: str
    at: datetime | None


class Sandbox(Answer):
    """Which sandbox a rollout has or had."""

    name: str
    environment: str
    uid: str = ""
    node: str = ""
    image: str = ""


class RolloutState(Answer):
    """One rollout as it stands."""

    rollout: str
    run: str
    environment: str
    state: str
    calls: int
    placements: int
    begun_at: datetime | None
    ended_at: datetime | None
    sandbox: Sandbox | None
    verdict: Verdict | None
    score: float | None = None
    item: str | None = None
    """The dataset item's id, if its grader call named one."""


class Tally(Answer):
    """What a rollout's calls add up to."""

    calls: int
    repeated: int
    """Calls for the same, tool and arguments, as an earlier one of the rollout."""
    outcomes: Mapping[str, int]
    median_ms: float | None
    slowest_ms: int | None
    shown: int
    """Characters of output that the model saw."""


class TalliedRollout(RolloutState):
    """One rollout with the sum of its calls."""

    tally: Tally


class Score(Answer):
    """A score, what it is made of, and what people should know about it."""

    rollout: str
    score: float
    parts: Mapping[str, float]
    notes: tuple[str, ...]
    graded_at: datetime
    seconds: float
    replayed: bool


class VerdictReport(Answer):
    """The verdict with everything that is known about it; None while the rollout runs."""

    rollout: str
    verdict: Verdict | None
    sandbox: Sandbox | None
    evidence: tuple[Any, ...]


class Step(Answer):
    """One call of a trajectory; without an outcome it still runs, or its result was lost."""

    number: int
    call_id: str
    tool: str
    arguments: Any
    begun_at: datetime
    finished_at: datetime | None
    outcome: str | None
    output: str | None
    data: Mapping[str, Any] | None
    facts: Mapping[str, Any] | None


class Run(Answer):
    """A run's figures."""

    run: str
    rollouts: int
    active: int
    ended: int
    calls: int
    verdicts: Mapping[str, int]
    causes: Mapping[str, int]
    outcomes: Mapping[str, int]
    last_at: datetime
    graded: int = 0
    mean_score: float | None = None


class Health(Answer):
    """Whether a step of a run is safe to train on, and why."""

    run: str
    advice: str
    """proceed, hold or skip."""
    reasons: tuple[str, ...]
    rollouts: int
    active: int
    ended: int
    masked: int
    masked_share: float
    causes: Mapping[str, int]
    calls: int


class Reservation(Answer):
    """How a reservation stands."""

    count: int
    left: int
    set_aside: int
    expires_at: datetime | None


class Environment(Answer):
    """One environment, as far as a trainer needs it."""

    name: str
    description: str
    tools: tuple[str, ...]
    limits: Mapping[str, int]
    budgets: Mapping[str, int]


class Pool(Answer):
    """How an environment's pool stands, over all tenants."""

    environment: str
    wanted: int
    starting: int | None
    """On their way; None while no controller tells."""
    most: int
    ready: int
    set_aside: int
    """Ready too, but kept for one run's reservation."""
    claimed: int
    waiting: int
    """Rollouts in line for a sandbox."""
    reserved: int
    spent: int


class Pools(Answer):
    """All pools, by environment."""

    controller_heard: bool
    pools: tuple[Pool, ...]


class FileWritten(Answer):
    """How much was written."""

    bytes: int


class TreeWritten(Answer):
    """How much was written, in how many entries."""

    entries: int
    bytes: int


class Readiness(Answer):
    """Whether a gateway serves trainers, and how each of its parts stands."""

    ready: bool
    draining: bool
    checks: Mapping[str, bool]
    time: datetime | None = None
    """By the gateway's clock."""


class Page(Answer, Generic[T]):
    """Part of a listing; *cursor* asks for the next part and is None at the end."""

    items: tuple[T, ...]
    cursor: str | None
