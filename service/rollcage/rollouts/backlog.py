"""
Results that could not be recorded while Redis was away, until they can.

A rollout that runs goes on without Redis: its sandbox's journal keeps every
call from running twice. What the calls came to waits here, in this process, and
is written down in order as soon as Redis answers. A gateway that dies before
that loses the record of these calls, not their effect. Marks that are to be
taken back wait here as well.
"""

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Final

from rollcage.core.errors import RollcageError, StoreRecovering, StoreUnavailable
from rollcage.core.ids import RolloutKey
from rollcage.rollouts.actions import Answer
from rollcage.rollouts.witness import Witness
from rollcage.store.calls import Call
from rollcage.store.store import Store

# Some minutes of a busy gateway.
_MOST_BYTES: Final = 64 << 20

# How often Redis is tried while it is away.
_LOOK_AGAIN: Final = 0.25


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """A call that was answered, and whose record is still to be written."""

    rollout: RolloutKey
    environment: str
    call: Call
    answer: Answer
    boot: str

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        return len(self.call.arguments) + len(self.answer.result)


@dataclass(frozen=True, slots=True)
class Unsent:
    """A call that may have been marked by a Redis that did not answer, and that nobody will send."""

    rollout: RolloutKey
    environment: str
    call: Call

    @property
    def size(self) -> int:
        """About how much memory it takes."""
        return len(self.call.arguments)


class Backlog:
    """What waits to be recorded, and marks that wait to be taken back."""

    def __init__(self, *, store: Store, witness: Witness) -> None:
        self._store = store
        self._witness = witness
        self._waiting: deque[Unrecorded | Unsent] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._writing = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def has_room(self) -> bool:
        """Whether one more call may be answered without a record."""
        return self._bytes < _MOST_BYTES

    def add(self, item: Unrecorded | Unsent) -> None:
        """Keep something until it can be recorded; raises StoreUnavailable when too much waits."""
        if not self.has_room:
            raise StoreUnavailable("too many results wait to be recorded")
        self._waiting.append(item)
        self._bytes += item.size
        self._filled.set()

    async def write(self) -> None:
        """Record what waits, whenever Redis answers, for ever."""
        while True:
            await self._filled.wait()
            if not await self.flush():
                await asyncio.sleep(_LOOK_AGAIN)

    async def flush(self) -> bool:
        """Record what waits; return whether nothing is left."""
        async with self._writing:
            while self._waiting:
                oldest = self._waiting[0]
                try:
                    await self._record(oldest)
                except (StoreUnavailable, StoreRecovering):
                    return False
                except RollcageError:
                    # The rollout is over or forgotten: there is no record any more to put it into.
                    self._witness.record_dropped(environment=oldest.environment)
                self._waiting.popleft()
                self._bytes -= oldest.size
            self._filled.clear()
            return True

    async def _record(self, one: Unrecorded | Unsent) -> None:
        calls = self._store.calls
        if isinstance(one, Unsent):
            await calls.retract(one.rollout, one.call.id, attempt=one.call.attempt)
            return
        await calls.begin(one.rollout, one.call)
        await calls.finish(one.rollout, one.call.id, one.answer.ending(one.boot))
