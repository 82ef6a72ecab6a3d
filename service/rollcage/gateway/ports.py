"""
What the gateway needs from others, as it calls it.

Wiring gives the real ones; tests give scripted ones. Everything else about
them is none of the gateway's business.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from rollcage.core.environment import Environment
from rollcage.core.health import Health
from rollcage.core.ids import RolloutId, RolloutKey, RunId, RunKey, TenantKey
from rollcage.gateway.admission import Admission
from rollcage.gateway.tenants import Tenant
from rollcage.grading.desk import Graded, Request
from rollcage.rollouts.actions import Action, Answer
from rollcage.rollouts.plainly import Asker
from rollcage.rollouts.routes import Reach
from rollcage.rollouts.views import RolloutVerdict, Step
from rollcage.store.pools import Counts, Level
from rollcage.store.records import Page, Rollout
from rollcage.store.reservations import Reservation
from rollcage.store.rollouts import Label, Run, Settled
from rollcage.store.tallies import Tally
from rollcage.telemetry.metrics import Metrics


class UseCases(Protocol):
    """What can be done with rollouts, in no trainer's language."""

    async def act(self, action: Action) -> Answer:
        """Run a call once and answer with its result."""

    def start(self, action: Action, asker: Asker) -> None:
        """Run a call likewise, and let *asker* hear of it."""

    async def finish(self, rollout: RolloutId, *, run: str, environment: str) -> Settled:
        """End a rollout that may be trained on."""

    async def delete(self, rollout: RolloutId, *, run: str, environment: str) -> Settled:
        """End a rollout that nobody wants any more."""

    async def verdict(self, rollout: RolloutId) -> RolloutVerdict:
        """Return how a rollout stands, with the evidence."""

    async def trajectory(self, rollout: RolloutId, *, cursor: str | None = None, limit: int = 100) -> Page[Step]:
        """Return a rollout's calls in their order."""

    async def reach(self, rollout: RolloutId) -> Reach:
        """Say where a rollout's sandbox is, and how to speak to it."""

    async def health(self, run: RunId) -> Health:
        """Say whether a run's step is safe to train on."""

    async def reserve(
        self, run: RunId, *, environment: str, reservation: str, count: int, ttl: timedelta, quota: int
    ) -> Reservation:
        """Set sandboxes aside for a run."""


class Records(Protocol):
    """What is written about rollouts and runs, for reading."""

    async def of_run(
        self, run: RunKey, label: Label = Label.ALL, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Rollout]:
        """Return a run's rollouts, newest first."""

    async def of_tenant(
        self, tenant: TenantKey, label: Label = Label.ALL, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Rollout]:
        """Return a tenant's rollouts, newest first."""

    async def tallies(self, rollouts: Sequence[RolloutKey]) -> tuple[Tally, ...]:
        """Return what each rollout's calls add up to."""

    async def runs(self, tenant: TenantKey, *, limit: int = 100) -> tuple[Run, ...]:
        """Return the figures of a tenant's latest runs, newest first."""


class Pools(Protocol):
    """How the pools stand, over all tenants."""

    async def counts(self, environment: str) -> Counts:
        """Count an environment's sandboxes and waiters."""

    async def levels(self) -> Mapping[str, Level] | None:
        """Return what only the leader sees, or None if nobody has led for a while."""


class Graders(Protocol):
    """Gives scores, or reasons why there is none."""

    async def grade(self, request: Request) -> Graded:
        """Return a rollout's score, the recorded one if there is one."""

    async def score(self, rollout: RolloutId) -> Graded | None:
        """Return the score that stands."""


class Doorkeeper(Protocol):
    """Knows whose token it is."""

    def holder(self, token: str) -> Tenant | None:
        """Return whose token it is, or None."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the gateway takes at most."""

    # Trainers send up to a megabyte, in either meaning of the word.
    rft_body_bytes: int = 1 << 20
    native_body_bytes: int = 4 << 20
    in_flight_calls: int = 2000
    # The platform gives up after ten minutes; by then it must have its answer.
    rft_seconds: timedelta = timedelta(seconds=585)
    native_seconds: timedelta = timedelta(seconds=585)
    # Rollouts that may wait for one environment.
    waiting_rollouts: int = 1000


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that the gateway is made of."""

    use_cases: UseCases
    records: Records
    pools: Pools
    tenants: Doorkeeper
    environments: Mapping[str, Environment]
    metrics: Metrics
    admission: Admission
    limits: Limits = field(default_factory=Limits)
    # Without it every request for a score is refused.
    graders: Graders | None = None


# What must be there before trainers may come, by name: the store, the signing key.
Checks = Callable[[], Awaitable[Mapping[str, bool]]]
