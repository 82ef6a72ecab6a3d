"""
The scripted source.

What is true changes at once, or when the clock says so; what watchers are
shown follows after ``lag``, as with any watch. Tests read the truth from
``sandboxes`` and what was asked for from ``requests``.
"""

import itertools
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from rollcage.core.endings import EndCause, Ending
from rollcage.core.environment import Environment, template_fingerprint
from rollcage.core.ids import sandbox_name
from rollcage.core.verdict_facts import Shield
from rollcage.sandboxes.board import Board
from rollcage.sandboxes.fake.clock import Clock, VirtualClock
from rollcage.sandboxes.fake.fate import Answer, Fate, Fates, always, refusal
from rollcage.sandboxes.source import Change, Gone, Phase, Sandbox, Seen


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asked for, and when."""

    at: datetime
    verb: Literal["create", "delete", "label", "evidence"]
    name: str


class FakeSource:
    """A source whose sandboxes exist only in its own account of them."""

    def __init__(
        self,
        clock: Clock | None = None,
        fates: Fates | None = None,
        *,
        lag: float = 0.0,
        nodes: tuple[str, ...] = ("node-1",),
        address: Callable[[str], str] = lambda name: f"http://{name}.invalid:8750",
    ) -> None:
        self.clock = clock or VirtualClock()
        self.fates = fates or always(Fate())
        self.lag = lag
        """Seconds until watchers see a change; may be changed at any time, and order is kept."""
        self.sandboxes: dict[str, Sandbox] = {}
        """What is true now."""
        self.requests: list[Request] = []
        self._nodes = itertools.cycle(nodes)
        self._address = address
        self._uids = itertools.count(1)
        self._stories: dict[str, Fate] = {}
        self._board = Board()
        self._untold: deque[tuple[datetime, Change]] = deque()
        self._stalled = False

    def template(self, environment: Environment) -> str:
        """Return the fingerprint of the recipe."""
        return template_fingerprint(environment)

    def shield(self, environment: Environment) -> Shield:
        """Pretend to be a pod."""
        del environment
        return Shield.KERNEL

    async def create(self, name: str, environment: Environment) -> None:
        """Make a sandbox, or do whatever its fate says; one that is there stays as it is."""
        self._note("create", sandbox_name(name))
        if name in self.sandboxes:
            return
        fate = self.fates(name)
        error = refusal(fate.answer, name)
        if fate.answer in {Answer.GIVEN, Answer.LOST}:
            self._make(name, environment, fate)
        if error:
            raise error

    async def delete(self, name: str, *, uid: str) -> None:
        """Remove a sandbox."""
        self._note("delete", name)
        sandbox = self.sandboxes.get(name)
        if sandbox is None or sandbox.uid != uid:
            return
        stays = self._stories[uid].stays_for
        if stays:
            self.clock.later(stays, lambda: self._remove(uid))
        else:
            self._remove(uid)

    async def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Add labels."""
        self._note("label", name)
        if sandbox := self.sandboxes.get(name):
            self._set(replace(sandbox, labels={**sandbox.labels, **labels}))

    async def evidence(self, sandbox: Sandbox) -> Mapping[str, Any]:
        """Know nothing more."""
        self._note("evidence", sandbox.name)
        return {}

    def observe(self) -> AbstractAsyncContextManager[AsyncIterator[Change]]:
        """Watch, with the lag that there is."""
        return self._board.observe()

    def end(self, name: str, ending: Ending) -> None:
        """End a sandbox, as if by itself."""
        self._end(self.sandboxes[name].uid, ending)

    def release(self, name: str) -> None:
        """Let a sandbox start that was held."""
        self._release(self.sandboxes[name].uid)

    def silence_node(self, node: str) -> None:
        """Let a node stop reporting, with everything on it."""
        for sandbox in [s for s in self.sandboxes.values() if s.node == node]:
            self._set(replace(sandbox, node_silent=True))

    def lose_node(self, node: str) -> None:
        """Lose a node, and everything on it."""
        for sandbox in [s for s in self.sandboxes.values() if s.node == node]:
            self._end(sandbox.uid, Ending(EndCause.NODE_LOST, message=f"{node} is gone"))

    def vanish(self, name: str) -> None:
        """Remove a sandbox without anyone having asked for it, and without a cause."""
        sandbox = self.sandboxes.pop(name)
        self._tell(Gone(sandbox))

    def stall(self) -> None:
        """Keep every change from the watchers until ``catch_up``."""
        self._stalled = True

    def catch_up(self) -> None:
        """Show the watchers everything that is due."""
        self._stalled = False
        self._show_due()

    def close(self) -> None:
        """End every watch."""
        self._board.close()

    def _make(self, name: str, environment: Environment, fate: Fate) -> None:
        uid = f"uid-{next(self._uids)}"
        self._stories[uid] = fate
        self._set(
            Sandbox(
                name=name,
                uid=uid,
                environment=environment.name,
                template=template_fingerprint(environment),
                phase=Phase.STARTING,
                created=self.clock.now(),
                image=environment.spec.image,
                hold=fate.hold,
            )
        )
        if fate.hold is None:
            self.clock.later(fate.starts_after, lambda: self._run(uid))
        elif fate.held_for is not None:
            self.clock.later(fate.held_for, lambda: self._release(uid))

    def _release(self, uid: str) -> None:
        sandbox = self._living(uid)
        if sandbox and sandbox.hold:
            self._set(replace(sandbox, hold=None))
            self.clock.later(self._stories[uid].starts_after, lambda: self._run(uid))

    def _run(self, uid: str) -> None:
        sandbox = self._living(uid)
        if sandbox is None:
            return
        fate = self._stories[uid]
        if fate.start_failure:
            self._end(uid, fate.start_failure)
            return
        self._set(replace(sandbox, phase=Phase.RUNNING, node=next(self._nodes), address=self._address(sandbox.name)))
        if fate.runs_for is not None:
            ending = fate.ending or Ending(EndCause.EXITED, exit_code=0)
            self.clock.later(fate.runs_for, lambda: self._end(uid, ending))

    def _end(self, uid: str, ending: Ending) -> None:
        if sandbox := self._living(uid):
            self._set(replace(sandbox, phase=Phase.ENDED, hold=None, ending=ending))

    def _remove(self, uid: str) -> None:
        sandbox = next((s for s in self.sandboxes.values() if s.uid == uid), None)
        if sandbox is None:
            return
        del self.sandboxes[sandbox.name]
        ending = sandbox.ending or Ending(EndCause.DELETED)
        self._tell(Gone(replace(sandbox, phase=Phase.ENDED, hold=None, ending=ending)))

    def _living(self, uid: str) -> Sandbox | None:
        alive = (s for s in self.sandboxes.values() if s.uid == uid and s.phase is not Phase.ENDED)
        return next(alive, None)

    def _set(self, sandbox: Sandbox) -> None:
        self.sandboxes[sandbox.name] = sandbox
        self._tell(Seen(sandbox))

    def _tell(self, change: Change) -> None:
        self._untold.append((self.clock.now() + timedelta(seconds=self.lag), change))
        if self.lag:
            self.clock.later(self.lag, self._show_due)
        else:
            self._show_due()

    def _show_due(self) -> None:
        # In order: what waits behind a slower change waits with it.
        while self._untold and not self._stalled and self._untold[0][0] <= self.clock.now():
            _, change = self._untold.popleft()
            if isinstance(change, Seen):
                self._board.show(change.sandbox)
            elif isinstance(change, Gone):
                self._board.take_down(change.last)

    def _note(self, verb: Literal["create", "delete", "label", "evidence"], name: str) -> None:
        self.requests.append(Request(self.clock.now(), verb, name))
