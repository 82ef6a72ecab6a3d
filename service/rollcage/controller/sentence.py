"""
Write a verdict down, and count it if it is the one that stands.

Which verdict it is was decided by whoever asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollcage.store.records import Verdict
from rollcage.telemetry.witness import count_verdict

if TYPE_CHECKING:
    from rollcage.core.verdict_words import Cause, Word
    from rollcage.store.records import Subject
    from rollcage.store.rollouts import Settled
    from rollcage.store.store import Leader, Store
    from rollcage.telemetry.metrics import Metrics

BY: Final = "controller"


class Sentence:
    """Ends rollouts for one leader."""

    def __init__(self, store: Store, leader: Leader, metrics: Metrics) -> None:
        self._store = store
        self._leader = leader
        self._metrics = metrics

    async def give(self, subject: Subject, word: Word, cause: Cause, evidence: str = "{}") -> Settled:
        """End a rollout, unless somebody was faster; raise NotLeader once deposed."""
        verdict = Verdict(word, by=BY, cause=cause, evidence=evidence)
        settled = await self._store.rollouts.end(subject, verdict, leader=self._leader.epoch)
        if settled.first:
            count_verdict(self._metrics, environment=subject.environment, word=word, cause=cause, calls=settled.calls)
        return settled
