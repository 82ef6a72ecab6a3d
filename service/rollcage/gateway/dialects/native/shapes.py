"""
What is sent and answered under ``/v1``.

Models only. Requests are closed to fields that nobody reads; answers may grow.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from rollcage.core.health import Advice, Reason
from rollcage.rollouts.actions import Outcome
from rollcage.store.records import State

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,200}$")]
EnvironmentName = Annotated[str, Field(pattern=r"^[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?$")]


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class ProblemShape(_Answer):
    """Problem details (RFC 9457); *code* is stable."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    cause: str | None = None


class CallRequest(_Request):
    """A tool call. The same call_id again is answered with the first result."""

    environment: EnvironmentName
    tool: Annotated[str, Field(max_length=512)]
    arguments: Any = None
    call_id: Id | None = None
    run: Id = "default"


class CallAnswer(_Answer):
    """What a call came to: a text for the model, data for programs, facts for the record."""

    call_id: str
    outcome: Outcome
    output: str
    data: Mapping[str, Any]
    facts: Mapping[str, Any]
    replayed: bool
    ended: bool


class EndRequest(_Request):
    """Where a rollout belongs that may never have made a call; not needed for one that has."""

    environment: EnvironmentName | None = None
    run: Id = "default"


class VerdictShape(_Answer):
    """What the trainer may do with a rollout, why, and who said so."""

    word: str
    """trainable, masked or abandoned; a later release may know more."""
    cause: str
    by: str
    at: datetime | None


class SandboxShape(_Answer):
    """Which sandbox a rollout has or had."""

    name: str
    environment: str
    uid: str = ""
    node: str = ""
    image: str = ""


class RolloutShape(_Answer):
    """One rollout as it stands."""

    rollout: str
    run: str
    environment: str
    state: State
    calls: int
    placements: int
    begun_at: datetime | None
    ended_at: datetime | None
    sandbox: SandboxShape | None
    verdict: VerdictShape | None
    score: float | None = None
    item: str | None = None


class RolloutPage(_Answer):
    """Some rollouts, newest first; *cursor* asks for the next, and is null at the end."""

    rollouts: tuple[RolloutShape, ...]
    cursor: str | None


class TallyShape(_Answer):
    """What a rollout's calls add up to."""

    calls: int
    repeated: int
    """Calls for the same, tool and arguments, as an earlier one of the rollout."""
    outcomes: Mapping[str, int]
    median_ms: float | None
    slowest_ms: int | None
    shown: int
    """Characters of output that the model saw."""


class TalliedRollout(RolloutShape):
    """One rollout with the sum of its calls."""

    tally: TallyShape


class TalliedPage(_Answer):
    """Some rollouts of a run with the sums of their calls, newest first."""

    rollouts: tuple[TalliedRollout, ...]
    cursor: str | None


class AnswerShape(_Request):
    """A final answer; *data* where it is JSON."""

    text: str = ""
    data: Annotated[Any, Field(alias="json")] = None


class GradeRequest(_Request):
    """
    What is to be graded. The same again is answered with the recorded score, unless *regrade* asks for another.

    *environment* and *run* are needed only for a rollout that never made a call.
    """

    answer: AnswerShape
    item: Mapping[str, Any] = {}
    environment: EnvironmentName | None = None
    run: Id = "default"
    regrade: bool = False


class ScoreShape(_Answer):
    """A score, what it is made of, and what people should know about it."""

    rollout: str
    score: float
    parts: Mapping[str, float]
    notes: tuple[str, ...]
    graded_at: datetime
    seconds: float
    replayed: bool


class VerdictAnswer(_Answer):
    """The verdict with everything that is known about it; null while the rollout runs."""

    rollout: str
    verdict: VerdictShape | None
    sandbox: SandboxShape | None
    evidence: tuple[Any, ...]


class StepShape(_Answer):
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


class TrajectoryPage(_Answer):
    """Some calls in the order in which they began."""

    steps: tuple[StepShape, ...]
    cursor: str | None


class RunShape(_Answer):
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


class RunList(_Answer):
    """A tenant's latest runs, newest first."""

    runs: tuple[RunShape, ...]


class HealthShape(_Answer):
    """Whether a step of the run is safe to train on, and why."""

    run: str
    advice: Advice
    reasons: tuple[Reason, ...]
    rollouts: int
    active: int
    ended: int
    masked: int
    masked_share: float
    causes: Mapping[str, int]
    calls: int


class ReservationRequest(_Request):
    """Sandboxes for a step to come. The same id again changes nothing."""

    id: Id
    count: Annotated[int, Field(ge=0, le=10_000)]
    ttl_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600


class ReservationShape(_Answer):
    """How a reservation stands."""

    count: int
    left: int
    set_aside: int
    expires_at: datetime | None


class EnvironmentShape(_Answer):
    """One environment, as far as a trainer needs it."""

    name: str
    description: str
    tools: tuple[str, ...]
    limits: Mapping[str, int]
    budgets: Mapping[str, int]


class EnvironmentList(_Answer):
    """All environments, by name."""

    environments: tuple[EnvironmentShape, ...]


class PoolShape(_Answer):
    """How an environment's pool stands, over all tenants."""

    environment: str
    wanted: int
    """Sandboxes that should stand ready."""
    starting: int | None
    """On their way; null while no controller tells."""
    most: int
    """All sandboxes together, at most."""
    ready: int
    set_aside: int
    """Ready too, but kept for one run's reservation."""
    claimed: int
    waiting: int
    """Rollouts in line for a sandbox."""
    reserved: int
    spent: int
    """Used, and to be deleted."""


class PoolList(_Answer):
    """All pools, by environment."""

    controller_heard: bool
    """Whether a controller has said lately how the pools stand."""
    pools: tuple[PoolShape, ...]


class ToolList(_Answer):
    """An environment's tools in one of the trainers' forms."""

    tools: tuple[Mapping[str, Any], ...]


class FileWritten(_Answer):
    """How much was written."""

    bytes: int


class TreeWritten(_Answer):
    """How much was written, in how many entries."""

    entries: int
    bytes: int
