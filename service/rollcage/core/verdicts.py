"""
Decide whose fault it was.

One function from typed facts to a judgement. Three rules stand above every
single case: what may have been delivered is never run again; an unknown cause
is the infrastructure's; what the model can bring about on purpose never is.
Writing a verdict down and telling a trainer belong to others.
"""

import signal
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final, assert_never

from rollcage.core.endings import EndCause, Ending
from rollcage.core.verdict_facts import (
    CallCame,
    CalledLate,
    Came,
    CpuTime,
    Facts,
    SandboxEnded,
    Setback,
    Shield,
    WentWrong,
)
from rollcage.core.verdict_words import (
    AGAIN,
    NOTHING,
    REFUSED,
    RESULT,
    Cause,
    Judgement,
    Ruling,
    Word,
    ended,
    masked,
)

# The toolserver's own word for: the model lowered my limits, and I cannot go on.
EXIT_CRIPPLED: Final = 86

_BY_SIGNAL: Final = 128
EXIT_STOPPED: Final = _BY_SIGNAL + signal.SIGTERM

# Half of the time without a processor is more than sharing one fairly with a neighbour costs.
_STARVED_SHARE: Final = 0.5


def judge(facts: Facts) -> Judgement:
    """Say what is to be done about *facts*."""
    match facts:
        case CallCame():
            return _call(facts)
        case SandboxEnded():
            return _ending(facts)
        case WentWrong():
            return _setback(facts)
        case CalledLate():
            return _late(facts)
        case _:
            assert_never(facts)


# Nothing ran, and a sandbox that no call had reached yet can be exchanged for another.
# One that a call may have reached holds the rollout's state, and is lost with it.
_LOST: Final[Mapping[Came, Cause]] = MappingProxyType(
    {
        Came.NOT_SENT: Cause.UNREACHABLE,
        Came.MISROUTED: Cause.MISROUTED,
        Came.RESTARTED: Cause.RESTARTED,
        Came.KEY_REFUSED: Cause.KEY_REFUSED,
        Came.NOT_READY: Cause.TOOLSERVER_FAULT,
        Came.STOPPING: Cause.STOPPED_FROM_OUTSIDE,
    }
)

# It may have run, and nobody can tell what came of it.
_UNTOLD: Final[Mapping[Came, Cause]] = MappingProxyType(
    {
        Came.ANSWER_LOST: Cause.ANSWER_LOST,
        Came.UNHEARD: Cause.ANSWER_LOST,
        Came.OUTPUT_LOST: Cause.OUTPUT_LOST,
        Came.INTERRUPTED: Cause.STOPPED_FROM_OUTSIDE,
        Came.FAULT: Cause.TOOLSERVER_FAULT,
    }
)

_TRIED_AGAIN: Final = frozenset({Came.BUSY, Came.TAKEN_BACK})
# Only whoever grades a rollout seals its sandbox: the call came too late, and says nothing about anybody.
_NOT_ANSWERED: Final = frozenset({Came.CONFLICT, Came.TAKEN_BACK, Came.SEALED})

# A lost state stays lost; the others may be a passing trouble of the network or a stale route.
_PASSING: Final = frozenset({Came.NOT_SENT, Came.MISROUTED})


def _call(call: CallCame) -> Judgement:
    if call.came is Came.RESULT:
        starved = call.timed_out and call.cpu is not None and _starved(call.cpu)
        return masked(Cause.CPU_STARVED) if starved else RESULT
    if call.came in _UNTOLD:
        # What has not arrived can be sent again to the same sandbox, whose journal runs it once.
        unheard = call.came is Came.UNHEARD and call.may_retry
        return AGAIN if unheard else masked(_UNTOLD[call.came])
    if call.came in _LOST:
        return _lost(call)
    return _turned_away(call)


def _lost(call: CallCame) -> Judgement:
    # A key that one sandbox refuses the others refuse as well; trying them would spend them all.
    exchangeable = not call.delivered and call.came is not Came.KEY_REFUSED
    if call.may_retry and (exchangeable or call.came in _PASSING):
        return AGAIN
    return masked(_LOST[call.came]) if call.delivered else REFUSED


def _turned_away(call: CallCame) -> Judgement:
    if call.came in _TRIED_AGAIN and call.may_retry:
        return AGAIN
    if call.came in _NOT_ANSWERED or (call.came is Came.RUNNING and not call.timed_out):
        return REFUSED
    # Busy, bad, full, too slow: the model's own doing, and it is told so. As an error it could be had on purpose.
    return RESULT


def _starved(cpu: CpuTime) -> bool:
    if cpu.used is None or cpu.lasted <= timedelta():
        return False
    promised = cpu.lasted * cpu.promised_cores
    return cpu.stalled >= cpu.lasted * _STARVED_SHARE and cpu.used < promised


_OUTSIDE: Final[Mapping[EndCause, Cause]] = MappingProxyType(
    {
        EndCause.EVICTED: Cause.EVICTED,
        EndCause.PREEMPTED: Cause.PREEMPTED,
        EndCause.DELETED: Cause.DELETED,
        EndCause.NODE_LOST: Cause.NODE_LOST,
        EndCause.START_FAILED: Cause.START_FAILED,
        EndCause.UNKNOWN: Cause.UNKNOWN,
    }
)

# Nobody saw how it ended; a silent node explains it.
_VANISHED: Final = frozenset({EndCause.DELETED, EndCause.UNKNOWN})


def _ending(facts: SandboxEnded) -> Judgement:
    if facts.own_deletion:
        return NOTHING
    if not facts.delivered:
        return AGAIN
    ending = facts.ending
    if ending is None or ending.cause in _VANISHED:
        return masked(Cause.NODE_LOST if facts.node_silent else _OUTSIDE[ending.cause if ending else EndCause.UNKNOWN])
    if ending.cause in _OUTSIDE:
        return masked(_OUTSIDE[ending.cause])
    return _limit(ending, facts)


def _limit(ending: Ending, facts: SandboxEnded) -> Judgement:
    match ending.cause:
        case EndCause.OWN_STORAGE_LIMIT:
            return ended(Cause.OUT_OF_STORAGE)
        case EndCause.OUT_OF_MEMORY:
            # The kernel counts a kill by the whole node like one by the sandbox's own limit.
            return masked(Cause.NODE_OUT_OF_MEMORY) if facts.node_out_of_memory else ended(Cause.OUT_OF_MEMORY)
        case EndCause.DEADLINE:
            # A sandbox is given out only if it outlasts what a rollout may take.
            return ended(Cause.BUDGET_SPENT) if facts.outlived_budget else masked(Cause.LIFETIME_OVER)
        case _:
            return _exit(ending, facts)


def _exit(ending: Ending, facts: SandboxEnded) -> Judgement:
    code = ending.exit_code
    if code == EXIT_CRIPPLED:
        return ended(Cause.TOOLSERVER_CRIPPLED)
    if code is not None and code > _BY_SIGNAL and _reaches(code - _BY_SIGNAL, facts.shield):
        # Out of memory, the node kills by the same signal that the model could send.
        return masked(Cause.NODE_OUT_OF_MEMORY) if facts.node_out_of_memory else ended(Cause.KILLED_FROM_INSIDE)
    return masked(Cause.STOPPED_FROM_OUTSIDE if code == EXIT_STOPPED else Cause.TOOLSERVER_DIED)


def _reaches(number: int, shield: Shield) -> bool:
    """Tell whether the model could have sent this signal."""
    match shield:
        case Shield.KERNEL:
            return False
        case Shield.FILTER:
            return number == signal.SIGKILL
        case Shield.NOTHING:
            return True


_SETBACKS: Final[Mapping[Setback, Judgement]] = MappingProxyType(
    {
        Setback.SOURCE_BUSY: AGAIN,
        Setback.API_SERVER_DOWN: NOTHING,
        Setback.WATCH_BEHIND: AGAIN,
        Setback.WATCH_EXPIRED: AGAIN,
        Setback.CREATE_TIMED_OUT: AGAIN,
        Setback.QUOTA_EXCEEDED: REFUSED,
        Setback.STORE_EMPTIED: AGAIN,
        Setback.AMBIGUOUS_OWNER: masked(Cause.AMBIGUOUS_OWNER),
        Setback.CALL_REPEATED: RESULT,
        Setback.NAME_UNRESOLVED: AGAIN,
        Setback.CLOCKS_DIFFER: NOTHING,
        Setback.GRADER_FAILED: REFUSED,
        Setback.NODE_AGENT_RESTARTED: NOTHING,
        Setback.GATEWAY_REPLACED: NOTHING,
        Setback.TRAINER_SILENT: Judgement(Ruling.ABANDONED, Cause.TRAINER_SILENT),
    }
)


def _setback(facts: WentWrong) -> Judgement:
    match facts.setback:
        case Setback.STORE_DOWN:
            # What runs goes on from the gateway's routes; the sandbox's own journal keeps calls from running twice.
            return NOTHING if facts.delivered else REFUSED
        case Setback.START_FAILED | Setback.POOL_EMPTY:
            return AGAIN if facts.may_retry else REFUSED
        case setback:
            return _SETBACKS[setback]


def _late(late: CalledLate) -> Judgement:
    if late.word is Word.MASKED:
        return masked(late.cause)
    if late.word is Word.TRAINABLE and late.cause.is_models:
        return ended(late.cause)
    return REFUSED
