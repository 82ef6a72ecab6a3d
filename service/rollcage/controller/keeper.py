"""
Keep the pools as they should be, for as long as this process leads.

Look, plan, act, once a second and whenever something changes. Every look
starts from what there is, so nothing depends on an earlier one having worked.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog

from rollcage.controller.audit import Audit
from rollcage.controller.deaths import Deaths
from rollcage.controller.hands import Hands
from rollcage.controller.levels import Levels
from rollcage.controller.orders import ENDED, Look, creations, may_label, removals
from rollcage.controller.planning import Goal, Moment, planned, stock
from rollcage.controller.recovering import Recovery
from rollcage.controller.reporting import Reporting
from rollcage.controller.sentence import Sentence
from rollcage.controller.settings import Settings
from rollcage.controller.settling import Settling
from rollcage.controller.view import View
from rollcage.core.errors import StoreRecovering, StoreUnavailable
from rollcage.core.pace import Burst
from rollcage.sandboxes.source import Phase, Seen, Synced

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rollcage.controller.greeting import Greeter
    from rollcage.core.environment import Environment
    from rollcage.sandboxes.recipes import Recipes
    from rollcage.sandboxes.source import Sandbox, SandboxSource
    from rollcage.store.pools import Whereabouts
    from rollcage.store.store import Leader, Store
    from rollcage.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_CHUNK: Final = 500
# Asked for again when it has not gone by then; a loaded node takes its time.
_DELETION_SECONDS: Final = 120.0


class Keeper:
    """The leader's work."""

    def __init__(
        self,
        *,
        source: SandboxSource,
        recipes: Recipes,
        store: Store,
        leader: Leader,
        greeter: Greeter,
        metrics: Metrics,
        settings: Settings | None = None,
        leading: Callable[[], bool] = lambda: True,
    ) -> None:
        self._source = source
        self._recipes = recipes
        self._store = store
        self._leader = leader
        self._metrics = metrics
        self._settings = settings or Settings()
        self._environments: Mapping[str, Environment] = {}
        self._published: Mapping[str, Environment] | None = None
        self._woken = asyncio.Event()
        self._known = asyncio.Event()
        self._synced = asyncio.Event()
        self._burst = Burst()
        self._used: dict[str, float] = {}
        self._bound: dict[str, frozenset[str]] = {}
        self.view = View()
        sentence = Sentence(store, leader, metrics)
        deaths = Deaths(source, store, leader, sentence)
        self._recovery = Recovery(store, leader, greeter, sentence)
        self._levels = Levels(leader.pools)
        self._audit = Audit(store, leader, deaths, sentence, every=self._settings.audit)
        self.hands = Hands(
            source=source,
            recipes=recipes,
            store=store,
            leader=leader,
            greeter=greeter,
            recovery=self._recovery,
            view=self.view,
            metrics=metrics,
            settings=self._settings,
            leading=leading,
            woken=self._woken.set,
        )
        self._settling = Settling(deaths=deaths, hands=self.hands, view=self.view, environment=self._environment)
        self._reporting = Reporting(hands=self.hands, view=self.view, metrics=metrics, every=self._settings.report)

    async def run(self) -> None:
        """Work until cancelled; raise NotLeader once deposed."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow_sandboxes())
                tasks.create_task(self._follow_recipes())
                tasks.create_task(self._follow_store())
                tasks.create_task(self.hands.deposed())
                tasks.create_task(self._loop())
        finally:
            await self.hands.close()

    async def _follow_sandboxes(self) -> None:
        async with self._source.observe() as changes:
            async for change in changes:
                if isinstance(change, Synced):
                    self._synced.set()
                # Asked before: one that is gone is forgotten, and its end would pass for a start that failed.
                settled = self.view.greeted | self.view.going.keys()
                ended = self.view.change(change)
                if ended:
                    self._settling.end(ended, started=ended.name in settled)
                if isinstance(change, Seen):
                    self._greet_if_new(change.sandbox)
                self._woken.set()

    def _greet_if_new(self, sandbox: Sandbox) -> None:
        """Offer what we asked for at once; what others asked for may be known to the store already."""
        ours = sandbox.name in self.view.asked and sandbox.name not in self.view.greeted
        if ours and sandbox.phase is Phase.RUNNING:
            self.hands.greet(sandbox.name)

    def _environment(self, name: str) -> Environment | None:
        # The map is another one whenever environments change.
        return self._environments.get(name)

    async def _follow_recipes(self) -> None:
        async with self._recipes.observe() as sets:
            async for environments in sets:
                self._environments = environments
                self._metrics.know(environments)
                self._known.set()
                self._woken.set()

    async def _follow_store(self) -> None:
        async with aclosing(self._store.changes()) as changes:
            async for _ in changes:
                self._woken.set()

    async def _loop(self) -> None:
        await self._synced.wait()
        await self._known.wait()
        while True:
            try:
                async with asyncio.timeout(self._settings.tick.total_seconds()):
                    await self._woken.wait()
            except TimeoutError:
                pass
            self._woken.clear()
            try:
                await self._look()
            except (StoreUnavailable, StoreRecovering) as error:
                log.warning("store_unavailable", error=str(error))
            await asyncio.sleep(self._settings.soonest.total_seconds())

    async def _look(self) -> None:
        if await self._recovery.needed():
            await self._recovery.run(self.view.seen.values())
            # What was said to a store that has forgotten it must be said again.
            self.view.greeted.clear()
            self._published = None
        if self._published != self._environments:
            await self._leader.environments.publish(self._environments)
            self._published = self._environments
        at = Moment(datetime.now(UTC), time.monotonic())
        names = self._environments.keys() | self.view.environments()
        looks = {name: await self._look_at(name, at) for name in sorted(names)}
        await self._audit.run_if_due(self._environments, looks.keys(), self.view.seen.keys(), at.monotonic)
        self._notice_claims(looks, at.monotonic)
        self._ask_again(at.monotonic)
        self._create(looks, at.monotonic)
        self._remove(looks, at.monotonic)
        self._label(looks, at.monotonic)
        self._reporting.tell(looks, self._environments, at.monotonic)
        await self._levels.tell(looks, at.monotonic)

    async def _look_at(self, name: str, at: Moment) -> Look:
        goal = self._goal(name, at.monotonic)
        there = [one.name for one in self.view.seen.values() if one.environment == name]
        fates: dict[str, Whereabouts] = {}
        for start in range(0, len(there), _CHUNK):
            fates |= await self._store.pools.fates(there[start : start + _CHUNK])
        for known in fates:
            self.view.greeted.add(known)
        stocked = stock(goal, self.view, fates, at)
        for waiting in (*stocked.unoffered, *(one.name for one in stocked.supply.starting)):
            sandbox = self.view.seen.get(waiting)
            if sandbox and sandbox.phase is Phase.RUNNING and waiting not in self.hands.condemned:
                self.hands.greet(waiting)
        for bound in stocked.bound:
            if self.view.seen[bound].node_silent:
                self.hands.doubt(bound, self._settling.lose)
        counts = await self._store.pools.counts(name)
        return Look(goal, stocked, counts, fates, planned(goal, stocked, counts, usual_start=self.hands.pace.usual))

    def _goal(self, name: str, now: float) -> Goal:
        environment = self._environment(name)
        if environment is None:
            return Goal.nothing(name)
        after = environment.spec.pool.scale_to_zero_after_seconds
        asleep = after is not None and now - self._used.setdefault(name, now) > after
        return Goal.of(environment, self._source.template(environment), asleep=asleep)

    def _notice_claims(self, looks: Mapping[str, Look], now: float) -> None:
        for name, look in looks.items():
            bound = frozenset(look.stock.bound)
            if bound - self._bound.get(name, bound) or look.counts.waiting:
                self._used[name] = now
            if bound - self._bound.get(name, bound):
                self._burst = self._burst.claimed(now)
            self._bound[name] = bound

    def _ask_again(self, now: float) -> None:
        for name, asked in self.view.overdue(now):
            environment = self._environment(asked.environment)
            if environment is None:
                self.view.refuse(name)
            elif self.hands.bucket.available(now) > 0:
                self.hands.create(environment, self._source.template(environment), name=name)

    def _create(self, looks: Mapping[str, Look], now: float) -> None:
        orders = creations(
            looks,
            pace=self.hands.pace,
            burst=self._burst,
            troubles=self.hands.troubles,
            writes=self.hands.bucket.available(now),
            now=now,
        )
        for name, number in orders.items():
            for _ in range(number):
                self.hands.create(self._environments[name], self._source.template(self._environments[name]))

    def _remove(self, looks: Mapping[str, Look], now: float) -> None:
        for name, since in tuple(self.view.going.items()):
            if now - since > _DELETION_SECONDS:
                del self.view.going[name]
        orders = removals(
            looks,
            ended=self._settling.removable,
            useless=self.hands.condemned - self.view.going.keys(),
            going=len(self.view.going),
            pace=self.hands.pace,
            writes=self.hands.bucket.available(now),
        )
        for name, why in orders:
            # One that was only asked for so far has to show itself first.
            if name in self.view.seen and name not in self.view.going:
                self.hands.remove(name, why, dead=why == ENDED)

    def _label(self, looks: Mapping[str, Look], now: float) -> None:
        """Only when there is nothing better to do: labels are for people, and for the worst day."""
        if not may_label(looks, burst=self._burst, now=now):
            return
        room = self.hands.bucket.available(now) // 2
        for look in looks.values():
            for name in look.stock.bound:
                rollout = look.fates[name].rollout
                if room > 0 and rollout and self.hands.label(name, rollout):
                    room -= 1
