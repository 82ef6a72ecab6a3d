"""
A keeper of pools over scripted sandboxes and a real Redis, with short words for what tests do to it.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from rollcage.controller.greeting import Unreachable
from rollcage.controller.keeper import Keeper
from rollcage.controller.settings import Settings
from rollcage.core.errors import NotLeader, StoreRecovering
from rollcage.core.ids import RolloutId, RolloutKey
from rollcage.sandboxes.fake.clock import LoopClock
from rollcage.sandboxes.fake.fate import Fate, always
from rollcage.sandboxes.fake.source import FakeSource
from rollcage.sandboxes.local.environments import GivenRecipes
from rollcage.store.calls import Call
from rollcage.store.claims import Claim
from rollcage.store.records import Subject, Verdict
from rollcage.telemetry.metrics import Metrics
from rollcage.wire.messages import State
from support.environments import environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from rollcage.core.environment import Environment
    from rollcage.sandboxes.fake.fate import Fates
    from rollcage.store.pools import Counts
    from rollcage.store.records import Rollout, Sandbox
    from rollcage.store.store import Store

PATIENCE = 20.0
QUICK = Settings(
    tick=timedelta(milliseconds=50),
    soonest=timedelta(milliseconds=10),
    audit=timedelta(milliseconds=100),
    report=timedelta(0),
)
SOON = Fate(starts_after=0.01)


@dataclass
class ScriptedToolservers:
    """What each sandbox's toolserver says of itself."""

    serves: dict[str, str] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    setup: dict[str, Any] = field(default_factory=lambda: {"state": "none", "output": ""})

    async def state(self, name: str, address: str) -> State:
        assert name in address
        if name in self.silent:
            raise Unreachable(f"{name} is silent")
        return State.model_validate(
            {
                "sandbox": name,
                "boot_id": "b1",
                "bound_to": self.serves.get(name),
                "ready": self.setup["state"] in {"none", "done"},
                "setup": self.setup,
                "journal": {"calls": self.calls.get(name, 0), "results_bytes": 0},
                "counters": {
                    "calls": {},
                    "replays": 0,
                    "conflicts": 0,
                    "misroutes_refused": 0,
                    "auth_failures": {},
                    "busy": 0,
                    "internal_errors": 0,
                    "connections_refused": 0,
                },
                "started_at": "2026-01-01T00:00:00Z",
                "uptime_ms": 1,
            }
        )


class Pools:
    """A source, its recipes and toolservers, and the store."""

    def __init__(self, store: Store, *, fates: Fates | None = None, **pool: Any) -> None:
        self.store = store
        self.source = FakeSource(LoopClock(), fates or always(SOON))
        self.recipes = GivenRecipes({"small": environment(pool=pool)})
        self.toolservers = ScriptedToolservers()
        self.metrics = Metrics(CollectorRegistry())
        self._epoch = 0

    @asynccontextmanager
    async def keeper(self) -> AsyncIterator[Keeper]:
        """Let a new leader work for the length of the block."""
        self._epoch += 1
        keeper = Keeper(
            source=self.source,
            recipes=self.recipes,
            store=self.store,
            leader=self.store.as_leader(self._epoch),
            greeter=self.toolservers,
            metrics=self.metrics,
            settings=QUICK,
        )
        working = asyncio.create_task(keeper.run())
        try:
            yield keeper
        finally:
            working.cancel()
            outcome = (await asyncio.gather(working, return_exceptions=True))[0]
            if outcome and not isinstance(outcome, asyncio.CancelledError):
                deposed, others = split(outcome)
                assert not others, others
                assert deposed

    async def want(self, *environments: Environment) -> None:
        await self.recipes.replace({one.name: one for one in environments})

    async def counts(self, name: str = "small") -> Counts:
        return await self.store.pools.counts(name)

    async def ready(self, number: int, name: str = "small") -> None:
        async def look() -> bool:
            return (await self.counts(name)).ready == number

        await until(look, f"{number} ready")

    async def claim(self, rollout: str, *, wait: float = 10.0, name: str = "small") -> Sandbox:
        subject = Subject.of(RolloutId("acme", rollout), run="run", environment=name)
        wish = Claim(subject, timedelta(seconds=wait), max_waiting=1000)
        sandbox: Sandbox | None = None
        async with asyncio.timeout(PATIENCE):
            while sandbox is None:
                try:
                    sandbox = await self.store.claims.claim(wish)
                except StoreRecovering:
                    # As a trainer does, who is told to come back.
                    await asyncio.sleep(0.01)
        self.toolservers.serves[sandbox.name] = subject.key
        return sandbox

    async def call(self, rollout: str) -> None:
        """Mark a call as possibly delivered."""
        await self.store.calls.begin(key(rollout), Call("c1", "h1", "a1"))
        record = await self.record(rollout)
        assert record.sandbox
        self.toolservers.calls[record.sandbox.name] = 1

    async def record(self, rollout: str) -> Rollout:
        found = await self.store.rollouts.get(key(rollout))
        assert found
        return found

    async def finish(self, rollout: str) -> None:
        record = await self.record(rollout)
        await self.store.rollouts.end(record.subject, Verdict("trainable", by="test"))

    def asked(self, verb: str) -> list[str]:
        """Return the names that something was asked for, each as often as it was."""
        return [one.name for one in self.source.requests if one.verb == verb]


def split(outcome: BaseException) -> tuple[list[BaseException], list[BaseException]]:
    """Tell the news that somebody else leads from everything else."""
    if not isinstance(outcome, BaseExceptionGroup):
        return ([outcome], []) if isinstance(outcome, NotLeader) else ([], [outcome])
    deposed: list[BaseException] = []
    others: list[BaseException] = []
    for inner in outcome.exceptions:
        first, second = split(inner)
        deposed += first
        others += second
    return deposed, others


def key(rollout: str) -> RolloutKey:
    return RolloutId("acme", rollout).key


async def until(look: Callable[[], Awaitable[bool]], what: str = "it") -> None:
    """Wait for a condition."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await look():  # noqa: ASYNC110 - what is looked at has no event
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"gave up waiting for {what}") from None
