"""
End a rollout whose sandbox is lost, and say what a rollout that is over answers.

The gateway notices a loss first and knows least about it. So before it masks a
rollout it waits, within bounds, for the controller's word, which may be that the
model did it itself; without one the cause is unknown, and that is ours.
"""

import contextlib
from typing import Final

import orjson

from rollcage.core.errors import RollcageError, RolloutEnded
from rollcage.core.verdict_facts import CalledLate, Came
from rollcage.core.verdict_words import Cause, Ruling, Word
from rollcage.core.verdicts import judge
from rollcage.rollouts import texts
from rollcage.rollouts.actions import Answer, Outcome, told
from rollcage.rollouts.errors import Masked
from rollcage.rollouts.job import Job
from rollcage.rollouts.routes import Route
from rollcage.rollouts.toolservers import Heard
from rollcage.rollouts.witness import Witness
from rollcage.store.records import Verdict
from rollcage.store.store import Store

BY_GATEWAY: Final = "gateway"

# The sandbox is gone or going, and the controller can see why. The others are faults of a sandbox that lives.
_CONTROLLER_KNOWS: Final = frozenset(
    {
        Came.NOT_SENT,
        Came.ANSWER_LOST,
        Came.MISROUTED,
        Came.RESTARTED,
        Came.STOPPING,
        Came.INTERRUPTED,
    }
)


class Closing:
    """The last word on rollouts, from the gateway's side."""

    def __init__(self, *, store: Store, witness: Witness) -> None:
        self._store = store
        self._witness = witness

    async def mask(self, job: Job, route: Route, heard: Heard, cause: Cause) -> Answer:
        """End a rollout that the infrastructure failed, unless somebody knows better; answers or raises like *late*."""
        if heard.came in _CONTROLLER_KNOWS:
            await self._word(job)
        settled = await self._store.rollouts.end(
            job.subject, Verdict(Word.MASKED, by=BY_GATEWAY, cause=cause, evidence=_evidence(job, route, heard))
        )
        if settled.first:
            self._witness.verdict_given(
                environment=job.subject.environment, word=Word.MASKED, cause=cause, calls=settled.calls
            )
        return await self.late(job, settled.standing.word, settled.standing.cause)

    async def late(self, job: Job, word: str, cause: str) -> Answer:
        """Answer a call for a rollout that is over: with the final text, or by raising Masked or RolloutEnded."""
        judgement = judge(CalledLate(_word(word), as_cause(cause)))
        if judgement.ruling is not Ruling.ENDED or judgement.cause is None:
            raise refusal(word, cause)
        answer = told(job.action, texts.ended(judgement.cause), Outcome.REFUSED, ended=True)
        if job.marked:
            # What the model sees belongs into the record; that it may be gone by now is no reason not to answer.
            with contextlib.suppress(RollcageError):
                await self._store.calls.finish(job.prepared.key, job.call.id, answer.ending())
        return answer

    async def sealed(self, job: Job) -> RolloutEnded:
        """Return what a call is refused with that came after its rollout's grading had begun; see *late*."""
        verdict = None
        with contextlib.suppress(RollcageError):
            rollout = await self._store.rollouts.get(job.prepared.key)
            verdict = rollout and rollout.verdict
        if verdict:
            return RolloutEnded(verdict=verdict.word, cause=verdict.cause)
        # It has none yet, and may still get another; but whoever asked for a score has made the last call.
        return RolloutEnded(verdict=Word.TRAINABLE, cause=Cause.FINISHED)

    async def _word(self, job: Job) -> None:
        """Wait until the rollout has a verdict, or nobody can be expected to give one any more."""
        while job.troubled() < job.patience.word.total_seconds() and job.left > 0:
            rollout = await self._store.rollouts.get(job.prepared.key)
            if rollout is None or rollout.verdict:
                return
            await job.rest()


def refusal(word: str, cause: str) -> Masked | RolloutEnded:
    """Return what a rollout that is over refuses with."""
    return Masked(cause=as_cause(cause)) if _word(word) is Word.MASKED else RolloutEnded(verdict=word, cause=cause)


def _word(word: str) -> Word:
    # A verdict of a later release: whatever it means, it is not ours to train on.
    return Word(word) if word in set(Word) else Word.MASKED


def as_cause(cause: str) -> Cause:
    """Return the cause that stands in a record."""
    return Cause(cause) if cause in set(Cause) else Cause.UNKNOWN


def _evidence(job: Job, route: Route, heard: Heard) -> str:
    sandbox = route.sandbox
    return orjson.dumps(
        {
            "noticed_by": BY_GATEWAY,
            "call": job.call.id,
            "came": heard.came,
            "code": heard.fields.get("code", ""),
            "sandbox": sandbox.name,
            "uid": sandbox.uid,
            "node": sandbox.node,
            "image": sandbox.image,
            "boot": route.boot,
            "sendings": job.sendings,
            "seconds": round(job.lasted, 3),
        }
    ).decode()
