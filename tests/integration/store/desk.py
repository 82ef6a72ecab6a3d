"""A store under test, a clock that the test turns, and short words for what tests do with them."""

from dataclasses import dataclass, field
from datetime import timedelta

from redis.asyncio import Redis

from rollcage.core.ids import RolloutId, RolloutKey
from rollcage.store.calls import Begun, Call
from rollcage.store.claims import Claim
from rollcage.store.records import Rollout, Sandbox, Subject, Verdict
from rollcage.store.store import Leader, Store
from support.waiting import eventually

ENVIRONMENT = "py"
TENANT = "acme"
FAILED_NODE = Verdict("masked", by="controller", cause="node_lost", evidence='{"node":"n1"}')
TRAINED = Verdict("trained", by="gateway")
PATIENCE = timedelta(seconds=30)


@dataclass
class Clock:
    """Milliseconds that pass only when told to."""

    now: int = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def advance(self, by: timedelta) -> None:
        self.now += int(by.total_seconds() * 1000)


@dataclass
class Desk:
    """What a test works with."""

    store: Store
    redis: Redis
    clock: Clock = field(default_factory=Clock)

    @property
    def leader(self) -> Leader:
        return self.store.as_leader(1)

    async def offer(self, *names: str) -> None:
        for name in names:
            await self.leader.pools.offer(sandbox(name))

    async def claim(self, rollout: str, run: str = "a", *, wait: timedelta = PATIENCE) -> str:
        found = await self.store.claims.claim(wish(rollout, run, wait=wait))
        return found.name

    async def begin(self, rollout: str, name: str = "call-1", *, attempt: str = "attempt-1") -> Begun:
        return await self.store.calls.begin(key(rollout), call(name, attempt=attempt))

    async def record(self, rollout: str) -> Rollout:
        found = await self.store.rollouts.get(key(rollout))
        assert found
        return found

    async def waiting(self) -> int:
        return (await self.store.pools.counts(ENVIRONMENT)).waiting

    async def until_waiting(self, count: int) -> None:
        async def enough() -> bool:
            return await self.waiting() == count

        await eventually(enough)


def sandbox(name: str) -> Sandbox:
    return Sandbox(name=name, environment=ENVIRONMENT, address="10.0.0.1:8080", uid=f"uid-{name}", node="n1")


def subject(rollout: str, run: str = "a") -> Subject:
    return Subject.of(RolloutId(TENANT, rollout), run=run, environment=ENVIRONMENT)


def key(rollout: str) -> RolloutKey:
    return RolloutId(TENANT, rollout).key


def wish(
    rollout: str,
    run: str = "a",
    *,
    wait: timedelta = PATIENCE,
    max_waiting: int = 1000,
    instead_of: str | None = None,
) -> Claim:
    return Claim(subject(rollout, run), wait=wait, max_waiting=max_waiting, instead_of=instead_of)


def call(name: str = "call-1", *, attempt: str = "attempt-1", digest: str = "h1", arguments: bytes = b"{}") -> Call:
    return Call(id=name, hash=digest, attempt=attempt, arguments=arguments)
