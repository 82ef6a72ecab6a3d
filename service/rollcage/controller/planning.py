"""
Put what was seen and what the store says into the words of ``core.pool``, and say what follows.

Pure: no clock, no request. One value in, one value out, for one environment.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from rollcage.core.pool import Idle, Plan, Starting, Supply, Wanted, plan
from rollcage.sandboxes.source import HoldCause, Phase
from rollcage.store.pools import Fate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rollcage.controller.view import Asked, View
    from rollcage.core.environment import Environment
    from rollcage.sandboxes.source import Sandbox
    from rollcage.store.pools import Counts, Whereabouts


_RIPE: Final = 0.9
_FOR_EVER: Final = timedelta(days=36_500)


@dataclass(frozen=True, slots=True)
class Moment:
    """When it is: by the wall, for what the cluster dates, and by the stopwatch for what we did ourselves."""

    wall: datetime
    monotonic: float


@dataclass(frozen=True, slots=True)
class Goal:
    """What one environment should have."""

    name: str
    template: str | None
    """None where there is no such environment any more: all its sandboxes are out of date."""
    warm: int
    most: int
    last_use: timedelta
    """How old a sandbox may be and still be given out: one rollout must fit into the rest of its life."""

    @property
    def ripe(self) -> timedelta:
        """How old a sandbox may be and not be replaced yet; early, because a pool of one age is replaced as one."""
        return self.last_use * _RIPE

    @classmethod
    def of(cls, environment: Environment, template: str, *, asleep: bool) -> Goal:
        """Return what an environment asks for; one that is *asleep* has scaled to zero."""
        spec = environment.spec
        return cls(
            name=environment.name,
            template=template,
            warm=0 if asleep else spec.pool.warm,
            most=spec.pool.max_pods,
            last_use=timedelta(seconds=spec.budgets.lifetime_seconds - spec.budgets.wall_seconds),
        )

    @classmethod
    def nothing(cls, name: str) -> Goal:
        """Return what is wanted of an environment that was removed."""
        return cls(name, None, 0, 0, _FOR_EVER)


@dataclass(frozen=True, slots=True)
class Stock:
    """The sandboxes of one environment, by what they are for."""

    supply: Supply
    spent: tuple[str, ...]
    """To be deleted: their rollouts are over, or they were taken back."""
    useless: tuple[str, ...]
    """Idle, and to be given to nobody: too old, or on a node that has fallen silent."""
    unoffered: tuple[str, ...]
    """Ready, and the store does not know them yet."""
    bound: tuple[str, ...]
    going: int
    """How many are being deleted."""

    @property
    def leaving(self) -> int:
        """How many take room and will never be of use again."""
        return len(self.spent) + len(self.useless) + self.going


def stock(goal: Goal, view: View, fates: Mapping[str, Whereabouts], at: Moment) -> Stock:
    """Sort what is known of an environment's sandboxes."""
    idle: list[Idle] = []
    starting: list[Starting] = []
    useless: list[str] = []
    bound: list[str] = []
    spent: list[str] = []
    unoffered: list[str] = []
    for name, sandbox in view.seen.items():
        if sandbox.environment != goal.name or name in view.going or sandbox.phase is Phase.ENDED:
            continue
        whereabouts = fates.get(name)
        fate = whereabouts.fate if whereabouts else None
        if fate is Fate.IDLE or fate is None:
            if sandbox.node_silent or at.wall - sandbox.created > goal.last_use:
                useless.append(name)
            elif fate:
                idle.append(Idle(name, outdated=_outdated(goal, sandbox, at)))
            elif name in view.greeted:
                unoffered.append(name)
            else:
                starting.append(_starting(goal, sandbox, view.asked.get(name), at))
        elif fate is Fate.BOUND:
            bound.append(name)
        else:
            spent.append(name)
    starting += [
        Starting(name, timedelta(seconds=at.monotonic - asked.since), outdated=asked.template != goal.template)
        for name, asked in view.asked.items()
        if asked.environment == goal.name and name not in view.seen
    ]
    # Those about to be offered are as good as idle; those that are being deleted still take room.
    idle += [Idle(name, outdated=_outdated(goal, view.seen[name], at)) for name in unoffered]
    going = sum(view.seen[name].environment == goal.name for name in view.going if name in view.seen)
    supply = Supply(tuple(idle), tuple(starting), claimed=len(bound) + len(spent) + len(useless) + going)
    return Stock(supply, tuple(spent), tuple(useless), tuple(unoffered), tuple(bound), going)


def planned(goal: Goal, stocked: Stock, counts: Counts, *, usual_start: timedelta | None) -> Plan:
    """Return what would bring the environment to its goal at once, were there no bound on starts."""
    wanted = Wanted(warm=goal.warm, demand=counts.waiting + counts.reserved, most=goal.most)
    return plan(
        wanted=wanted,
        supply=stocked.supply,
        in_flight=len(stocked.supply.starting) + wanted.warm + wanted.demand,
        usual_start=usual_start,
    )


def _outdated(goal: Goal, sandbox: Sandbox, at: Moment) -> bool:
    return sandbox.template != goal.template or at.wall - sandbox.created > goal.ripe


def _starting(goal: Goal, sandbox: Sandbox, asked: Asked | None, at: Moment) -> Starting:
    hold = sandbox.hold.cause if sandbox.hold else None
    return Starting(
        sandbox.name,
        age=timedelta(seconds=at.monotonic - asked.since) if asked else at.wall - sandbox.created,
        outdated=sandbox.template != goal.template,
        unschedulable=hold is HoldCause.UNSCHEDULABLE,
        failing=hold in {HoldCause.IMAGE_PULL, HoldCause.START_ERROR},
    )
