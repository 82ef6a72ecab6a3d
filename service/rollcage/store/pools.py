"""
The controller's side of the pools: what comes, what goes, what is to be deleted.

Whatever writes takes the leader's epoch and is refused once a newer leader has
written. How many sandboxes there should be is decided in ``core``.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rollcage.core.ids import RolloutKey, environment_name, sandbox_name
from rollcage.core.values import value
from rollcage.store.keys import Keys
from rollcage.store.link import Link, Value
from rollcage.store.pages import page
from rollcage.store.records import Page, Rollout, Sandbox

# Long enough for a new leader to take over, short enough that old news is not taken for new.
LEVELS_HOLD: Final = timedelta(seconds=15)


class Fate(StrEnum):
    """Where a sandbox is in its life, as far as the store knows."""

    IDLE = "idle"
    BOUND = "bound"
    WITHDRAWN = "withdrawn"
    SPENT = "spent"


# Looked up: making one of its value takes several times as long, and the leader asks about all sandboxes at every look.
_FATES: Final = MappingProxyType({fate.encode(): fate for fate in Fate})


@value
class Whereabouts:
    """Where a sandbox is in its life, and whose it is or was."""

    fate: Fate
    rollout: RolloutKey | None


class Departure(StrEnum):
    """What a sandbox's going away meant."""

    WITHDRAWN = "withdrawn"  # it was idle, or not offered yet; no claim will get it
    VACATED = "vacated"  # its rollout, which nothing had reached, may be placed again
    DELIVERED = "delivered"  # a call may have reached it: its end is for a verdict
    BOUND = "bound"  # it is in use and stays so
    SPENT = "spent"  # its rollout is over


@dataclass(frozen=True, slots=True)
class Gone:
    """What a sandbox's going away meant, and for which rollout."""

    departure: Departure
    rollout: RolloutKey | None

    @property
    def was_idle(self) -> bool:
        """Whether nobody had it and nobody will."""
        return self.departure is Departure.WITHDRAWN


@dataclass(frozen=True, slots=True)
class Counts:
    """How an environment stands."""

    ready: int
    # Ready too, but kept for one run.
    set_aside: int
    claimed: int
    waiting: int
    # Promised to runs and not yet claimed, whether set aside already or not.
    reserved: int
    # Used, and to be deleted.
    spent: int

    @property
    def demand(self) -> int:
        """How many sandboxes are wanted that are not there, warm pool aside."""
        return self.waiting + self.reserved - self.set_aside


@dataclass(frozen=True, slots=True)
class Level:
    """What only the leader sees of an environment: its aim, and what is on its way."""

    wanted: int
    starting: int


class Pools:
    """What anybody may know about the pools."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def counts(self, environment: str) -> Counts:
        """Count, after dropping what time has ended."""
        answer = await self._link.run("counts", environment=environment_name(environment))
        return Counts(*answer)

    async def levels(self) -> dict[str, Level] | None:
        """Return what the leader last told, by environment, or None if nobody has led for a while."""
        document = await self._link.ask("GET", self._link.keys("levels"))
        return None if document is None else {name: Level(*pair) for name, pair in json.loads(document).items()}

    async def bindings(self, environment: str, *, cursor: str | None = None, limit: int = 100) -> Page[Rollout]:
        """Return the rollouts that have a sandbox, oldest first."""
        index = Keys.short("bindings", environment_name(environment))
        return await page(self._link, index, cursor=f"({cursor}" if cursor else "-inf", limit=limit)

    async def idle(self, environment: str, *, since: timedelta, limit: int = 100) -> tuple[Rollout, ...]:
        """Return rollouts, bound or not, that nothing has happened to for so long and that have not ended."""
        index = Keys.short("activity", environment_name(environment))
        return (await page(self._link, index, idle=int(since.total_seconds() * 1000), limit=limit)).items

    async def offered(self, environment: str) -> frozenset[str]:
        """Return the sandboxes that a claim could get, those that are kept for a run among them."""
        names = await self._link.run("offered", environment=environment_name(environment))
        return frozenset(name.decode() for name in names)

    async def spent(self, environment: str, *, limit: int = 100) -> tuple[str, ...]:
        """Return the sandboxes to delete, longest over first."""
        key = self._link.keys("spent", environment_name(environment))
        names = await self._link.ask("ZRANGE", key, 0, limit - 1)
        return tuple(name.decode() for name in names)

    async def fates(self, sandboxes: Sequence[str]) -> dict[str, Whereabouts]:
        """Return where each sandbox is in its life; those that were never offered are left out."""
        names = [sandbox_name(name) for name in sandboxes]
        found = await self._link.run("fates", names=" ".join(names))
        return {
            name: Whereabouts(_FATES[fate], RolloutKey(rollout.decode()) if rollout else None)
            for name, fate, rollout in zip(names, found[::2], found[1::2], strict=True)
            if fate
        }


class LeadersPools(Pools):
    """What the leader may do to them."""

    def __init__(self, link: Link, *, epoch: int) -> None:
        super().__init__(link)
        self._epoch = epoch

    async def offer(self, sandbox: Sandbox) -> Fate:
        """
        Say that a sandbox is ready: it goes to whose turn it is, else on the ready list.

        Once in its life, however often it is said.
        """
        answer = await self._link.run(
            "offer",
            leader=self._epoch,
            sandbox=sandbox.name,
            environment=sandbox.environment,
            card=sandbox.card(),
        )
        return Fate(answer[0].decode())

    async def tell(self, levels: Mapping[str, Level]) -> None:
        """Say how all pools stand; it holds for LEVELS_HOLD."""
        document = {name: (level.wanted, level.starting) for name, level in sorted(levels.items())}
        lapse = int(LEVELS_HOLD.total_seconds() * 1000)
        await self._link.run("tell", leader=self._epoch, document=json.dumps(document), lapse=lapse)

    async def withdraw(self, sandbox: str) -> Gone:
        """Take an idle sandbox back before it is deleted. One that is in use stays in use."""
        return await self._depart(sandbox, {})

    async def died(self, sandbox: str) -> Gone:
        """Say that a sandbox is dead, and learn what that means for whoever had it."""
        return await self._depart(sandbox, {"dead": 1})

    async def forget(self, sandbox: str, *, environment: str) -> None:
        """Say that a spent sandbox is deleted."""
        await self._link.run(
            "forget",
            leader=self._epoch,
            sandbox=sandbox_name(sandbox),
            environment=environment_name(environment),
        )

    async def _depart(self, sandbox: str, fields: dict[str, Value]) -> Gone:
        departure, rollout = await self._link.run("depart", leader=self._epoch, sandbox=sandbox_name(sandbox), **fields)
        return Gone(Departure(departure.decode()), RolloutKey(rollout.decode()) if rollout else None)
