"""
Fill an emptied store again from what the sandboxes tell.

New claims are refused until this is done. A sandbox that cannot be asked is
believed to serve the rollout on its label; without one nobody can tell whom it
serves, and it is given to nobody.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from rollcage.controller.cards import ROLLOUT_LABEL, card
from rollcage.controller.greeting import Unreachable
from rollcage.core.errors import RestoreConflict
from rollcage.core.ids import BadId, rollout_key
from rollcage.core.verdict_facts import Setback, WentWrong
from rollcage.core.verdict_words import Cause, Word
from rollcage.core.verdicts import judge
from rollcage.sandboxes.source import Phase
from rollcage.store.records import Subject
from rollcage.store.recovery import Phase as StorePhase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rollcage.controller.greeting import Greeter
    from rollcage.controller.sentence import Sentence
    from rollcage.sandboxes.source import Sandbox
    from rollcage.store.store import Leader, Store

log = structlog.get_logger(__name__)

# Most answer at once; one on a starved node may need some time, and everybody waits for it.
_TRIES: Final = 4
_PAUSE: Final = 2.0


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery found."""

    bound: int = 0
    idle: int = 0
    conflicts: int = 0
    unreachable: tuple[str, ...] = ()


class Recovery:
    """Restores bindings."""

    def __init__(self, store: Store, leader: Leader, greeter: Greeter, sentence: Sentence) -> None:
        self._store = store
        self._leader = leader
        self._greeter = greeter
        self._sentence = sentence

    async def needed(self) -> bool:
        """Tell whether the store has lost its memory."""
        return (await self._store.standpoint()).phase is StorePhase.RECOVERING

    async def run(self, sandboxes: Iterable[Sandbox]) -> Recovered:
        """Ask all sandboxes, write down what they tell, and open the store for claims."""
        generation = uuid.uuid4().hex
        if not await self._leader.recovery.begin(generation):
            return Recovered()
        running = [one for one in sandboxes if one.phase is Phase.RUNNING and one.address]
        # Not a task group, which would wrap the one error that callers wait for: a store that is gone again.
        outcomes = await asyncio.gather(*(self._restore(one) for one in running))
        await self._leader.recovery.complete(generation)
        recovered = Recovered(
            bound=outcomes.count("bound"),
            idle=outcomes.count("idle"),
            conflicts=outcomes.count("conflict"),
            unreachable=tuple(one.name for one, told in zip(running, outcomes, strict=True) if told == "unreachable"),
        )
        log.info(
            "store_recovered",
            bound=recovered.bound,
            idle=recovered.idle,
            conflicts=recovered.conflicts,
            unreachable=len(recovered.unreachable),
        )
        return recovered

    async def _restore(self, sandbox: Sandbox) -> str:
        owner, may_have_run = await self._owner(sandbox)
        if owner is None:
            return "unreachable"
        if owner == "":
            return "idle"  # Offered by whoever greets it, like any other.
        restored = await self.restore(sandbox, owner, may_have_run=may_have_run)
        return "bound" if restored else "conflict"

    async def restore(self, sandbox: Sandbox, owner: str, *, may_have_run: bool) -> bool:
        """
        Write down that a sandbox serves *owner*; return whether that can be.

        Where the record tells of another owner or another sandbox, none of them can be trusted any more.
        """
        try:
            subject = Subject(rollout_key(owner), sandbox.environment)
            await self._leader.recovery.restore(subject, card(sandbox), may_have_run=may_have_run)
        except BadId:
            log.exception("stranger_found", sandbox=sandbox.name, told=owner)
            return False
        except RestoreConflict as conflict:
            log.warning("restore_conflict", sandbox=sandbox.name, told=owner, error=str(conflict))
            for key in {conflict.told_rollout, conflict.recorded_rollout} - {""}:
                await self._mask(Subject(rollout_key(key), sandbox.environment))
            return False
        return True

    async def _mask(self, subject: Subject) -> None:
        judgement = judge(WentWrong(Setback.AMBIGUOUS_OWNER))
        await self._sentence.give(subject, judgement.word or Word.MASKED, judgement.cause or Cause.AMBIGUOUS_OWNER)

    async def _owner(self, sandbox: Sandbox) -> tuple[str | None, bool]:
        """Return whom a sandbox serves, nobody being the empty text, and whether anything may have run there."""
        for attempt in range(_TRIES):
            try:
                state = await self._greeter.state(sandbox.name, sandbox.address or "")
            except Unreachable as error:
                log.warning("toolserver_unreachable", sandbox=sandbox.name, error=str(error))
                if attempt + 1 < _TRIES:
                    await asyncio.sleep(_PAUSE)
            else:
                return state.bound_to or "", state.journal.calls > 0
        return sandbox.labels.get(ROLLOUT_LABEL), True
