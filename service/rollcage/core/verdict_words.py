"""
The words of verdicts: what a trainer may do with a rollout, why, and who has to act.

Only words. Which of them applies is decided in ``verdicts``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Word(StrEnum):
    """What the trainer may do with a rollout."""

    TRAINABLE = "trainable"  # whatever happened in it was the model's own doing
    MASKED = "masked"  # the infrastructure failed: no grade, no training
    ABANDONED = "abandoned"  # its trainer went away


class Ruling(StrEnum):
    """What is to be done about something that happened."""

    RESULT = "result"  # a tool result: the model sees it and goes on
    ENDED = "ended"  # the model ended its own sandbox: scored, and said so to every later call
    AGAIN = "again"  # tried again or placed elsewhere; nobody notices
    MASKED = "masked"  # the infrastructure failed: every later call and the grader refuse
    REFUSED = "refused"  # the request is refused; the rollout's verdict is not touched
    ABANDONED = "abandoned"  # nobody is there any more who could be answered
    NOTHING = "nothing"  # no effect on any rollout


class Cause(StrEnum):
    """Why a verdict is what it is. Metrics count by these."""

    # The trainer's.
    FINISHED = "finished"
    DELETED_BY_TRAINER = "deleted_by_trainer"
    TRAINER_SILENT = "trainer_silent"
    # The model's own doing.
    OUT_OF_MEMORY = "out_of_memory"
    OUT_OF_STORAGE = "out_of_storage"
    TOOLSERVER_CRIPPLED = "toolserver_crippled"
    KILLED_FROM_INSIDE = "killed_from_inside"
    BUDGET_SPENT = "budget_spent"
    # The infrastructure's.
    NODE_OUT_OF_MEMORY = "node_out_of_memory"
    NODE_LOST = "node_lost"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    DELETED = "deleted"
    LIFETIME_OVER = "lifetime_over"
    START_FAILED = "start_failed"
    RESTARTED = "restarted"
    STOPPED_FROM_OUTSIDE = "stopped_from_outside"
    TOOLSERVER_DIED = "toolserver_died"
    TOOLSERVER_FAULT = "toolserver_fault"
    UNREACHABLE = "unreachable"
    ANSWER_LOST = "answer_lost"
    OUTPUT_LOST = "output_lost"
    CPU_STARVED = "cpu_starved"
    MISROUTED = "misrouted"
    AMBIGUOUS_OWNER = "ambiguous_owner"
    KEY_REFUSED = "key_refused"
    UNKNOWN = "unknown"

    @property
    def is_models(self) -> bool:
        """Whether the model brought it about, so that it must never excuse a rollout."""
        return self in _MODELS


_MODELS: Final = frozenset(
    {
        Cause.OUT_OF_MEMORY,
        Cause.OUT_OF_STORAGE,
        Cause.TOOLSERVER_CRIPPLED,
        Cause.KILLED_FROM_INSIDE,
        Cause.BUDGET_SPENT,
    }
)

_WORDS: Final = {
    Ruling.ENDED: Word.TRAINABLE,
    Ruling.MASKED: Word.MASKED,
    Ruling.ABANDONED: Word.ABANDONED,
}


@dataclass(frozen=True, slots=True)
class Judgement:
    """What is to be done, and why."""

    ruling: Ruling
    cause: Cause | None = None

    @property
    def word(self) -> Word | None:
        """The verdict that the rollout gets by this, or None if it goes on or is not touched."""
        return _WORDS.get(self.ruling)


RESULT: Final = Judgement(Ruling.RESULT)
AGAIN: Final = Judgement(Ruling.AGAIN)
REFUSED: Final = Judgement(Ruling.REFUSED)
NOTHING: Final = Judgement(Ruling.NOTHING)


def ended(cause: Cause) -> Judgement:
    """Say that the model ended its sandbox."""
    return Judgement(Ruling.ENDED, cause)


def masked(cause: Cause) -> Judgement:
    """Say that the infrastructure failed the rollout."""
    return Judgement(Ruling.MASKED, cause)
