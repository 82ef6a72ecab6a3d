"""
The facts that verdicts are made from.

Typed by whoever saw them: the gateway tells what a call came to, the controller
how a sandbox ended, and either that something else went wrong. No texts: the
model can write those.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum, auto
from typing import TypeAlias

from rollcage.core.endings import Ending
from rollcage.core.values import value
from rollcage.core.verdict_words import Cause, Word


class Came(StrEnum):
    """What a call came to, as the gateway saw it."""

    RESULT = auto()  # answered, at once or from the journal
    NOT_SENT = auto()  # no connection: not a byte has left
    ANSWER_LOST = auto()  # it may have arrived, and neither answer nor journal told in time what came of it
    UNHEARD = auto()  # its answer was lost, and the sandbox itself says that it never arrived
    TAKEN_BACK = auto()  # another gateway had marked it, and took that back: nobody has sent it
    RUNNING = auto()  # it runs on at the end of the caller's time
    OUTPUT_LOST = auto()  # answered without the output, or with what is no answer
    MISROUTED = auto()  # the fence refused: another sandbox, or another rollout's
    RESTARTED = auto()  # another boot than before: the state is lost
    KEY_REFUSED = auto()  # our signature was not accepted
    NOT_READY = auto()  # still setting up
    STOPPING = auto()  # being stopped; nothing ran
    INTERRUPTED = auto()  # stopped from outside while the call ran
    FAULT = auto()  # the toolserver has a fault of its own
    BUSY = auto()  # too many calls of this rollout at once; nothing ran
    BAD = auto()  # arguments that the toolserver does not take; nothing ran
    SEALED = auto()  # its rollout is over, or being graded; nothing ran
    FULL = auto()  # as many calls as a sandbox takes
    CONFLICT = auto()  # the same call id with other arguments


@dataclass(frozen=True, slots=True)
class CpuTime:
    """
    What a call got of the node's processors.

    That it waited for them proves nothing: any model can start more loops than
    it has processors. That it waited and did not get what was promised it, no
    model can bring about; so without *used* there is no evidence.
    """

    lasted: timedelta
    stalled: timedelta
    used: timedelta | None
    promised_cores: float


@value
class CallCame:
    """What a call came to, and what stood before."""

    came: Came
    # Whether this or another call of the rollout may have reached its sandbox earlier.
    delivered: bool
    # Whether there is time, and a sandbox or a try, left.
    may_retry: bool = False
    # It had all the time that a call may take.
    timed_out: bool = False
    cpu: CpuTime | None = None


class Shield(StrEnum):
    """What keeps the model's signals from the toolserver."""

    KERNEL = auto()  # it is PID 1 and the kernel drops them: a pod under runc, bubblewrap, namespaces
    FILTER = auto()  # its own filter, which SIGKILL passes: gVisor
    NOTHING = auto()  # it is not PID 1 of the model's namespace: Landlock, or no isolation


@dataclass(frozen=True, slots=True)
class SandboxEnded:
    """
    How a sandbox ended and what else was true then.

    *ending* is None when nothing of it was seen: it vanished, or its node fell silent.
    """

    ending: Ending | None
    # Whether a call of its rollout may have reached it.
    delivered: bool
    # We deleted it ourselves, because its rollout was over.
    own_deletion: bool = False
    # SystemOOM events or MemoryPressure on its node, around that time.
    node_out_of_memory: bool = False
    node_silent: bool = False
    # Its rollout had used up the time that a rollout may take.
    outlived_budget: bool = False
    shield: Shield = Shield.KERNEL


class Setback(StrEnum):
    """What goes wrong beside calls and sandboxes."""

    START_FAILED = auto()
    SOURCE_BUSY = auto()
    API_SERVER_DOWN = auto()
    WATCH_BEHIND = auto()
    WATCH_EXPIRED = auto()
    CREATE_TIMED_OUT = auto()
    POOL_EMPTY = auto()
    QUOTA_EXCEEDED = auto()
    STORE_DOWN = auto()
    STORE_EMPTIED = auto()
    AMBIGUOUS_OWNER = auto()
    CALL_REPEATED = auto()
    NAME_UNRESOLVED = auto()
    CLOCKS_DIFFER = auto()
    GRADER_FAILED = auto()
    NODE_AGENT_RESTARTED = auto()
    GATEWAY_REPLACED = auto()
    TRAINER_SILENT = auto()


@dataclass(frozen=True, slots=True)
class WentWrong:
    """A setback, and whether it met a rollout that runs (a call may have reached its sandbox)."""

    setback: Setback
    delivered: bool = False
    may_retry: bool = True


@dataclass(frozen=True, slots=True)
class CalledLate:
    """A call for a rollout that has its verdict."""

    word: Word
    cause: Cause


Facts: TypeAlias = CallCame | SandboxEnded | WentWrong | CalledLate
