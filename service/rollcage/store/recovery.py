"""
Tell an emptied Redis from a live one, and fill it again.

The store refuses to begin anything new until the leader declares that all
bindings are restored. Asking the pods is the controller's work.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rollcage.store.link import Link, Value
from rollcage.store.records import Sandbox, Subject
from rollcage.store.rollouts import MAX_EVIDENCE

# Major: releases that differ cannot share a store. Minor: the newer one only added something.
SCHEMA: Final = "2.0"


class Phase(StrEnum):
    """Whether new claims are served."""

    LIVE = "live"
    RECOVERING = "recovering"


@dataclass(frozen=True, slots=True)
class Standpoint:
    """Where the store is: its phase, the generation of its memory, the epoch of its last leader."""

    phase: Phase
    generation: str | None
    leader: int


async def guard(link: Link) -> str:
    """Return the schema of the data, which becomes ours where there is none, or raise SchemaMismatch."""
    answer = await link.run("schema", schema=SCHEMA)
    return str(answer[0].decode())


async def standpoint(link: Link) -> Standpoint:
    """Say where the store is; an emptied one is recovering, and has no generation."""
    phase, generation, leader = await link.ask("HMGET", link.keys("state"), "phase", "generation", "leader")
    return Standpoint(
        phase=Phase((phase or b"recovering").decode()),
        generation=generation.decode() if generation else None,
        leader=int(leader or 0),
    )


class Recovery:
    """What the leader does after a loss, and at the very first start."""

    def __init__(self, link: Link, *, epoch: int) -> None:
        self._link = link
        self._epoch = epoch

    async def begin(self, generation: str, *, force: bool = False) -> bool:
        """
        Start a recovery named *generation*; return whether there is anything to recover.

        A live store is left alone unless *force* says that it cannot be
        trusted, after a failover for instance.
        """
        fields: dict[str, Value] = {"force": 1} if force else {}
        answer = await self._link.run(
            "recover", leader=self._epoch, step="begin", generation=generation, schema=SCHEMA, **fields
        )
        return bool(answer[0] == b"recovering")

    async def restore(self, subject: Subject, sandbox: Sandbox, *, may_have_run: bool) -> bool:
        """
        Write down what a pod tells: it serves *subject*. Return whether the rollout goes on there.

        Raises RestoreConflict where the record says otherwise. Without knowing
        that nothing ran in the pod, *may_have_run* must be true.
        """
        answer = await self._link.run(
            "restore",
            leader=self._epoch,
            sandbox=sandbox.name,
            card=sandbox.card(),
            delivered=int(may_have_run),
            most=MAX_EVIDENCE,
            **subject.fields(),
        )
        return bool(answer[0] == b"bound")

    async def complete(self, generation: str) -> None:
        """Declare that everything is restored. Raises StoreRecovering if memory was lost once more."""
        await self._link.run("recover", leader=self._epoch, step="complete", generation=generation)
