"""
What is known of a call before it is sent, what it is judged by, and what the model is told of it.

No I/O: from the record, the job and what was heard to values.
"""

from typing import Final

from rollcage.core.errors import RolloutEnded
from rollcage.core.verdict_facts import CallCame, Came
from rollcage.core.verdict_words import Word
from rollcage.rollouts import texts
from rollcage.rollouts.actions import Action, Answer, Outcome, answered, recorded, told
from rollcage.rollouts.job import Job
from rollcage.rollouts.routes import Route
from rollcage.rollouts.toolservers import Heard
from rollcage.store.calls import Begun

_RESULT: Final = CallCame(Came.RESULT, delivered=True)


def known(begun: Begun | None) -> Answer | None:
    """Return what the record already holds of a call; raises what its rollout's verdict demands."""
    if begun is None:
        return None
    if begun.verdict and (begun.result is None or begun.verdict == Word.MASKED):
        raise RolloutEnded(verdict=begun.verdict, cause=begun.cause)
    return None if begun.result is None else recorded(begun.result, replayed=True)


def over_budget(action: Action, begun: Begun) -> str | None:
    """Return what the model is told if its rollout may make no more calls."""
    budgets = action.environment.spec.budgets
    if begun.number > budgets.calls:
        return texts.out_of_calls(budgets.calls)
    if begun.rollout_begun_at and (begun.begun_at - begun.rollout_begun_at).total_seconds() > budgets.wall_seconds:
        return texts.out_of_time(budgets.wall_seconds)
    return None


def facts_of(job: Job, route: Route, heard: Heard, *, alone: bool) -> CallCame:
    """Put together what a call is judged by; *alone*: this gateway may be cut off."""
    if heard.came is Came.RESULT:
        if heard.fields.get("class") != Outcome.TIMED_OUT:
            return _RESULT
        return CallCame(heard.came, delivered=True, timed_out=True, cpu=job.cpu(heard))
    delivered = route.delivered or job.delivered
    return CallCame(
        heard.came,
        delivered=delivered,
        may_retry=job.left > 0
        # The next sandbox would be spent as well.
        and not (alone and not delivered)
        and job.may_retry(heard, delivered=delivered, boot=route.boot),
        timed_out=job.had_its_time,
    )


def answer_to(job: Job, heard: Heard) -> Answer:
    """Return what the model is told of what its call came to."""
    match heard.came:
        case Came.RESULT:
            fields = heard.fields
            if not fields:
                return recorded(heard.body, replayed=heard.replayed)
            return answered(heard.body, fields, replayed=heard.replayed)
        case Came.BUSY:
            return told(job.action, texts.TOO_MANY_AT_ONCE, Outcome.REFUSED)
        case Came.FULL:
            return told(job.action, texts.NO_MORE_CALLS, Outcome.REFUSED)
        case Came.RUNNING:
            return told(job.action, texts.still_running(job.lasted), Outcome.TIMED_OUT)
        case _:
            return told(job.action, texts.not_taken(heard.message), Outcome.MALFORMED)
