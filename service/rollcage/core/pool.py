"""
Decide how a warm pool should change.

Pure arithmetic over what is wanted and what was seen; acting on the answer,
at which pace and by which leader, belongs to the controller.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

# A start is stuck only when others get through: on a starved node all are
# slow, and replacing slow ones makes every one of them later still.
STUCK_AFTER = timedelta(minutes=5)
STUCK_FACTOR = 10

# One failed start tells as much as fifty, and costs the registry less.
PROBES_WHILE_FAILING = 1


class Why(StrEnum):
    """Why a sandbox that serves no rollout is removed."""

    SURPLUS = "surplus"
    OUTDATED = "outdated"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an environment asks for."""

    warm: int
    """Sandboxes that should stand ready."""
    demand: int
    """Claims that wait, and reservations that are not filled yet."""
    most: int
    """All sandboxes of the environment together, claimed ones too."""


@dataclass(frozen=True, slots=True)
class Idle:
    """A sandbox that is ready and serves nobody."""

    name: str
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class Starting:
    """A sandbox that was asked for, whether or not the watch has shown it yet."""

    name: str
    age: timedelta
    outdated: bool = False
    unschedulable: bool = False
    failing: bool = False
    """Its image cannot be pulled, or it cannot be started."""

    @property
    def held(self) -> bool:
        """Whether it waits for something that another one would wait for too."""
        return self.unschedulable or self.failing


@dataclass(frozen=True, slots=True)
class Supply:
    """What there is."""

    idle: tuple[Idle, ...] = ()
    starting: tuple[Starting, ...] = ()
    claimed: int = 0

    @property
    def total(self) -> int:
        """All sandboxes of the environment."""
        return len(self.idle) + len(self.starting) + self.claimed


@dataclass(frozen=True, slots=True)
class Removal:
    """One sandbox to remove, and why."""

    name: str
    why: Why


@dataclass(frozen=True, slots=True)
class Plan:
    """How to bring the pool to what is wanted."""

    create: int = 0
    remove: tuple[Removal, ...] = ()
    cramped: bool = False
    """Whether it cannot be brought there before some of what takes room is gone."""


def plan(*, wanted: Wanted, supply: Supply, in_flight: int, usual_start: timedelta | None) -> Plan:
    """
    Decide how to bring the pool to what is wanted.

    Starting ones count as supply: the watch lags our own writes, and counting
    only what it shows would create every missing sandbox twice. *in_flight* is
    how many may be starting at once; *usual_start* is how long starts take
    these days, if any has succeeded lately.
    """
    stuck = _stuck(supply.starting, usual_start)
    healthy = tuple(one for one in supply.starting if one.name not in {removal.name for removal in stuck})
    ready = wanted.warm + wanted.demand
    # Outdated idle ones serve until their successors are ready; outdated
    # starting ones never will be of use.
    current = sum(not one.outdated for one in supply.idle) + sum(not one.outdated for one in healthy)
    lacking = max(0, ready - current)
    room = max(0, wanted.most - supply.total)
    create = min(lacking, room, _starts_allowed(healthy, in_flight))
    remove = (*stuck, *_outdated(supply, healthy, ready, room), *_surplus(supply, healthy, ready))
    return Plan(create, remove, cramped=lacking > room)


def _starts_allowed(starting: tuple[Starting, ...], in_flight: int) -> int:
    """Another start helps only if it would not wait for what the held ones wait for."""
    if any(one.unschedulable for one in starting):
        return 0
    limit = PROBES_WHILE_FAILING if any(one.failing for one in starting) else in_flight
    return max(0, limit - len(starting))


def _stuck(starting: tuple[Starting, ...], usual_start: timedelta | None) -> tuple[Removal, ...]:
    """Return at most one start that has gone wrong for itself alone: the oldest."""
    if usual_start is None:
        return ()
    limit = max(STUCK_AFTER, STUCK_FACTOR * usual_start)
    late = [one for one in starting if not one.held and one.age > limit]
    return tuple(Removal(one.name, Why.STUCK) for one in sorted(late, key=lambda one: one.age)[-1:])


def _outdated(supply: Supply, healthy: tuple[Starting, ...], ready: int, room: int) -> tuple[Removal, ...]:
    fresh = sum(not one.outdated for one in supply.idle)
    old = [one.name for one in supply.idle if one.outdated]
    useless = [one.name for one in healthy if one.outdated]
    # As many old ones go as new ones have come to stand in for them; where
    # there is no room for a successor, one makes way for it.
    replaced = max(0, len(old) + fresh - ready)
    if replaced == room == len(healthy) == 0:
        replaced = 1
    return tuple(Removal(name, Why.OUTDATED) for name in (*useless, *old[:replaced]))


def _surplus(supply: Supply, healthy: tuple[Starting, ...], ready: int) -> tuple[Removal, ...]:
    """Return what is too much, those that are not ready first: they have cost the least."""
    starting = [one.name for one in sorted(healthy, key=lambda one: one.age) if not one.outdated]
    idle = [one.name for one in supply.idle if not one.outdated]
    return tuple(Removal(name, Why.SURPLUS) for name in (*starting, *idle)[: max(0, len(starting) + len(idle) - ready)])
