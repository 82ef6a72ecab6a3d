"""
Carry plans out: ask for sandboxes, greet and offer them, label them, remove them.

Short and dull. Each hand does one thing to one sandbox, tells the view, and
leaves what went wrong to the next look, which plans anew.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import structlog

from rollcage.controller.cards import ROLLOUT_LABEL, card, labels
from rollcage.controller.greeting import Unreachable
from rollcage.controller.troubles import Reason, Troubles
from rollcage.core.errors import NotLeader, RollcageError, StoreUnavailable
from rollcage.core.pace import Bucket, Pace
from rollcage.sandboxes.source import (
    Phase,
    QuotaExceeded,
    SandboxRejected,
    SourceThrottled,
    SourceUnavailable,
)
from rollcage.store.pools import Departure
from rollcage.telemetry.labels import StartLabel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from rollcage.controller.greeting import Greeter
    from rollcage.controller.recovering import Recovery
    from rollcage.controller.settings import Settings
    from rollcage.controller.view import View
    from rollcage.core.environment import Environment
    from rollcage.core.ids import RolloutKey
    from rollcage.sandboxes.recipes import Fare, Recipes
    from rollcage.sandboxes.source import Sandbox, SandboxSource
    from rollcage.store.store import Leader, Store
    from rollcage.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

# A toolserver is ready milliseconds after its container runs; one with a set-up may take minutes.
_SOON: Final = 0.05
_LATER: Final = 1.0
# The node's heartbeat has been missing for most of a minute already; a busy sandbox may miss one question.
_DOUBTS: Final = 3
_DOUBT_SECONDS: Final = 2.0
# An API server that does not answer is not helped by asking at once.
_REST_SECONDS: Final = 1.0
# Enough of an output to see why; a log is no place for all of it.
_TOLD_CHARACTERS: Final = 500


class Hands:
    """Acts for one leader, as long as it leads."""

    def __init__(
        self,
        *,
        source: SandboxSource,
        recipes: Recipes,
        store: Store,
        leader: Leader,
        greeter: Greeter,
        recovery: Recovery,
        view: View,
        metrics: Metrics,
        settings: Settings,
        leading: Callable[[], bool],
        woken: Callable[[], None],
    ) -> None:
        self.pace = Pace()
        self.troubles = Troubles(self._gave_up)
        self.bucket = Bucket(rate=settings.writes_per_second, burst=settings.writes_at_once)
        self.condemned: set[str] = set()
        """Sandboxes that will never be of use."""
        self._source = source
        self._recipes = recipes
        self._store = store
        self._leader = leader
        self._greeter = greeter
        self._recovery = recovery
        self._view = view
        self._metrics = metrics
        self._leading = leading
        self._woken = woken
        self._greeting: set[str] = set()
        self._doubted: set[str] = set()
        self._labelled: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._deposed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def deposed(self) -> None:
        """Return never, or raise NotLeader as soon as a newer leader has written."""
        await self._deposed

    def _gave_up(self, environment: str, reason: Reason) -> None:
        self._metrics.start_failures.at(environment, StartLabel(reason.value)).inc()

    async def close(self) -> None:
        """Let go of everything at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._deposed.cancel()

    def do(self, work: Coroutine[Any, Any, None], after: Callable[[], None] = lambda: None) -> None:
        """Do something beside everything else; what goes wrong is logged, and left to the next look."""

        async def guarded() -> None:
            try:
                await work
            except NotLeader as error:
                if not self._deposed.done():
                    self._deposed.set_exception(error)
            except RollcageError as error:
                log.warning("hand_failed", code=error.code, error=str(error))
            finally:
                after()
                self._woken()

        task = asyncio.create_task(guarded())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def create(self, environment: Environment, template: str, *, name: str | None = None) -> None:
        """Ask for a sandbox; with *name*, for one that was asked for before."""
        name = name or f"{environment.name[:40].rstrip('.-')}-{uuid.uuid4().hex[:12]}"
        self._view.ask(name, environment.name, template, time.monotonic())
        self.bucket.take(1)
        self.do(self._create(name, environment))

    def greet(self, name: str) -> None:
        """Offer a sandbox as soon as its toolserver is ready."""
        if name not in self._greeting:
            self._greeting.add(name)
            self.do(self._greet(name), lambda: self._greeting.discard(name))

    def doubt(self, name: str, lost: Callable[[Sandbox], None]) -> None:
        """Find out whether a sandbox on a silent node still answers; tell if it does not."""
        if name not in self._doubted:
            self._doubted.add(name)
            self.do(self._doubt(name, lost), lambda: self._doubted.discard(name))

    def remove(self, name: str, why: str, *, dead: bool = False) -> None:
        """Take a sandbox back and delete it, unless a rollout was faster; one that is *dead* is just deleted."""
        self._view.going[name] = time.monotonic()
        self.bucket.take(1)
        self.do(self._remove(name, why, dead=dead))

    def label(self, name: str, rollout: RolloutKey) -> bool:
        """Write on a sandbox whom it serves; return whether that was still to be done."""
        sandbox = self._view.seen.get(name)
        # It may have gone since it was looked at.
        if sandbox is None or name in self._labelled or ROLLOUT_LABEL in sandbox.labels:
            return False
        self._labelled.add(name)
        self.bucket.take(1)
        self.do(self._label(name, rollout))
        return True

    def report(self, environment: str, fare: Fare) -> None:
        """Tell people how an environment fares."""
        self.do(self._recipes.report(environment, fare))

    async def _create(self, name: str, environment: Environment) -> None:
        now = time.monotonic()
        try:
            if self._leading():
                await self._source.create(name, environment)
                self._view.answer(name)
        except SourceThrottled as refusal:
            self._view.refuse(name)
            self.bucket.close(now, seconds=refusal.retry_after)
            self.pace = self.pace.throttled()
        except (QuotaExceeded, SandboxRejected) as refusal:
            self._view.refuse(name)
            trouble = self.troubles.refused(environment.name, refusal, now)
            log.warning("sandbox_refused", environment=environment.name, reason=trouble.reason, error=str(refusal))
        except SourceUnavailable as error:
            # It may be there all the same: it stays asked for, and is asked for again under this name.
            self.bucket.close(time.monotonic(), seconds=_REST_SECONDS)
            log.warning("creation_unanswered", sandbox=name, error=str(error))

    async def _greet(self, name: str) -> None:
        pause = _SOON
        while (sandbox := self._alive(name)) and not await self._welcome(sandbox):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LATER)

    async def _doubt(self, name: str, lost: Callable[[Sandbox], None]) -> None:
        for _ in range(_DOUBTS):
            sandbox = self._alive(name)
            if sandbox is None or not sandbox.node_silent:
                return
            last = sandbox
            try:
                await self._greeter.state(name, sandbox.address or "")
            except Unreachable:
                await asyncio.sleep(_DOUBT_SECONDS)
            else:
                # Only the node's agent is silent. It is asked again at the next look but a few.
                await asyncio.sleep(_DOUBT_SECONDS * _DOUBTS)
                return
        lost(last)

    def _alive(self, name: str) -> Sandbox | None:
        sandbox = self._view.seen.get(name)
        gone = sandbox is None or sandbox.phase is not Phase.RUNNING or name in self._view.going
        return None if gone else sandbox

    async def _welcome(self, sandbox: Sandbox) -> bool:
        """Ask once; return whether there is nothing more to ask."""
        try:
            state = await self._greeter.state(sandbox.name, sandbox.address or "")
        except Unreachable:
            return False
        if state.setup.state == "failed":
            self.condemned.add(sandbox.name)
            self.troubles.failed(sandbox.environment, Reason.SETUP_FAILED, state.setup.output, time.monotonic())
            output = state.setup.output[-_TOLD_CHARACTERS:]
            log.warning("setup_failed", sandbox=sandbox.name, environment=sandbox.environment, output=output)
            return True
        if not state.ready:
            return False
        if state.bound_to:
            if not await self._recovery.restore(sandbox, state.bound_to, may_have_run=state.journal.calls > 0):
                self.condemned.add(sandbox.name)
        else:
            await self._leader.pools.offer(card(sandbox))
        self._started(sandbox)
        return True

    def _started(self, sandbox: Sandbox) -> None:
        took = self._view.started_in(sandbox.name, time.monotonic())
        if sandbox.name not in self._view.greeted and took is not None:
            beside = sum(1 for _ in self._view.starting())
            self.pace = self.pace.started(timedelta(seconds=took), beside=beside)
            self.troubles.over(sandbox.environment)
            self._metrics.sandbox_start_seconds.at(sandbox.environment).observe(took)
            self._metrics.pool_refills.at(sandbox.environment).inc()
            log.info("sandbox_ready", sandbox=sandbox.name, environment=sandbox.environment, seconds=round(took, 2))
        self._view.greeted.add(sandbox.name)
        self._view.asked.pop(sandbox.name, None)

    async def _remove(self, name: str, why: str, *, dead: bool) -> None:
        sandbox = self._view.seen.get(name)
        if sandbox is None:
            return
        try:
            if not self._leading():
                self._view.going.pop(name, None)
                return
            if not dead and (await self._leader.pools.withdraw(name)).departure is Departure.BOUND:
                self._view.going.pop(name, None)
                return
            await self._source.delete(name, uid=sandbox.uid)
        except (SourceUnavailable, SourceThrottled, StoreUnavailable) as error:
            self._view.going.pop(name, None)
            self.bucket.close(time.monotonic(), seconds=_REST_SECONDS)
            log.warning("deletion_unanswered", sandbox=name, error=str(error))
        else:
            self.condemned.discard(name)
            log.info("sandbox_removed", sandbox=name, environment=sandbox.environment, why=why)

    async def _label(self, name: str, rollout: RolloutKey) -> None:
        record = await self._store.rollouts.get(rollout)
        if record and self._leading():
            await self._source.label(name, labels(record))
