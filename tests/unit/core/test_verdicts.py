"""Every row of the table "whose fault was it", each a sentence: first the facts, then what is done about them."""

from datetime import timedelta
from itertools import product

import pytest

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
from rollcage.core.verdict_words import Cause, Ruling, Word
from rollcage.core.verdicts import EXIT_CRIPPLED, EXIT_STOPPED, judge

KILLED = 137
GVISOR_DIED = 128
CRASHED = 2


def call(came: Came, *, first: bool = False, retry: bool = False, timed_out: bool = False) -> CallCame:
    return CallCame(came, delivered=not first, may_retry=retry, timed_out=timed_out)


def timeout(*, stalled: float, used: float | None) -> CallCame:
    """A call that was promised half a core for ten seconds."""
    second = timedelta(seconds=1)
    cpu = CpuTime(10 * second, stalled * second, None if used is None else used * second, promised_cores=0.5)
    return CallCame(Came.RESULT, delivered=True, timed_out=True, cpu=cpu)


def end(cause: EndCause, exit_code: int | None = None, **circumstances: bool | Shield) -> SandboxEnded:
    return SandboxEnded(Ending(cause, exit_code), **{"delivered": True, **circumstances})  # type: ignore[arg-type]


def wrong(setback: Setback, *, running: bool = False, retry: bool = True) -> WentWrong:
    return WentWrong(setback, delivered=running, may_retry=retry)


TABLE: dict[str, tuple[Facts, Ruling, Cause | None]] = {
    "1 a command that fails is a tool result": (call(Came.RESULT), Ruling.RESULT, None),
    "1 a command over its own limit on a healthy sandbox is a tool result": (
        timeout(stalled=0, used=0),
        Ruling.RESULT,
        None,
    ),
    "2 a child killed for memory while the toolserver lives is a tool result": (call(Came.RESULT), Ruling.RESULT, None),
    "3 the whole container over its own memory is the model's": (
        end(EndCause.OUT_OF_MEMORY, KILLED),
        Ruling.ENDED,
        Cause.OUT_OF_MEMORY,
    ),
    "3 the same under gVisor is the model's": (
        end(EndCause.OUT_OF_MEMORY, GVISOR_DIED, shield=Shield.FILTER),
        Ruling.ENDED,
        Cause.OUT_OF_MEMORY,
    ),
    "4 a node out of memory is ours": (
        end(EndCause.OUT_OF_MEMORY, KILLED, node_out_of_memory=True),
        Ruling.MASKED,
        Cause.NODE_OUT_OF_MEMORY,
    ),
    "4 an eviction for memory pressure is ours": (
        end(EndCause.EVICTED, EXIT_STOPPED, node_out_of_memory=True),
        Ruling.MASKED,
        Cause.EVICTED,
    ),
    "5 an eviction for the pod's own disk is the model's": (
        end(EndCause.OWN_STORAGE_LIMIT, EXIT_STOPPED),
        Ruling.ENDED,
        Cause.OUT_OF_STORAGE,
    ),
    "6 disk pressure caused by others is ours": (end(EndCause.EVICTED, EXIT_STOPPED), Ruling.MASKED, Cause.EVICTED),
    "7 preemption is ours": (end(EndCause.PREEMPTED), Ruling.MASKED, Cause.PREEMPTED),
    "7 a pod deleted by somebody else is ours": (
        end(EndCause.DELETED, EXIT_STOPPED),
        Ruling.MASKED,
        Cause.DELETED,
    ),
    "7 a toolserver stopped from outside is ours": (
        end(EndCause.EXITED, EXIT_STOPPED),
        Ruling.MASKED,
        Cause.STOPPED_FROM_OUTSIDE,
    ),
    "7 a pod that we deleted after its rollout changes nothing": (
        end(EndCause.DELETED, EXIT_STOPPED, own_deletion=True),
        Ruling.NOTHING,
        None,
    ),
    "8 a lost node is ours": (end(EndCause.NODE_LOST), Ruling.MASKED, Cause.NODE_LOST),
    "8 a silent node is lost before anybody has seen an ending": (
        SandboxEnded(None, delivered=True, node_silent=True),
        Ruling.MASKED,
        Cause.NODE_LOST,
    ),
    "8 a pod deleted off a silent node went with the node": (
        end(EndCause.DELETED, node_silent=True),
        Ruling.MASKED,
        Cause.NODE_LOST,
    ),
    "9 a restarted container has lost its state": (call(Came.RESTARTED, retry=True), Ruling.MASKED, Cause.RESTARTED),
    "9 a container that restarted for its own memory is the model's": (
        end(EndCause.OUT_OF_MEMORY, KILLED),
        Ruling.ENDED,
        Cause.OUT_OF_MEMORY,
    ),
    "10 a toolserver that died of its own fault is ours": (
        end(EndCause.EXITED, CRASHED),
        Ruling.MASKED,
        Cause.TOOLSERVER_DIED,
    ),
    "10 a toolserver killed where only outsiders can is ours": (
        end(EndCause.EXITED, KILLED),
        Ruling.MASKED,
        Cause.TOOLSERVER_DIED,
    ),
    "10 a toolserver that the model crippled is the model's": (
        end(EndCause.EXITED, EXIT_CRIPPLED),
        Ruling.ENDED,
        Cause.TOOLSERVER_CRIPPLED,
    ),
    "10 a toolserver killed where the model can is the model's": (
        end(EndCause.EXITED, KILLED, shield=Shield.FILTER),
        Ruling.ENDED,
        Cause.KILLED_FROM_INSIDE,
    ),
    "10 the same on a node out of memory is ours": (
        end(EndCause.EXITED, KILLED, shield=Shield.FILTER, node_out_of_memory=True),
        Ruling.MASKED,
        Cause.NODE_OUT_OF_MEMORY,
    ),
    "10 a filter keeps the other signals out": (
        end(EndCause.EXITED, EXIT_STOPPED, shield=Shield.FILTER),
        Ruling.MASKED,
        Cause.STOPPED_FROM_OUTSIDE,
    ),
    "10 without any shield every signal may be the model's": (
        end(EndCause.EXITED, EXIT_STOPPED, shield=Shield.NOTHING),
        Ruling.ENDED,
        Cause.KILLED_FROM_INSIDE,
    ),
    "10 an ending that nobody saw is ours": (SandboxEnded(None, delivered=True), Ruling.MASKED, Cause.UNKNOWN),
    "10 an ending that nobody understands is ours": (end(EndCause.UNKNOWN), Ruling.MASKED, Cause.UNKNOWN),
    "11 a sandbox that fails to start is replaced": (wrong(Setback.START_FAILED), Ruling.AGAIN, None),
    "11 when nothing starts the request is refused": (
        wrong(Setback.START_FAILED, retry=False),
        Ruling.REFUSED,
        None,
    ),
    "11 whatever ends a sandbox that no call reached, the rollout gets another": (
        end(EndCause.OUT_OF_MEMORY, KILLED, delivered=False),
        Ruling.AGAIN,
        None,
    ),
    "12 a busy API server is asked again": (wrong(Setback.SOURCE_BUSY), Ruling.AGAIN, None),
    "13 an API server down is not noticed by what runs": (
        wrong(Setback.API_SERVER_DOWN, running=True),
        Ruling.NOTHING,
        None,
    ),
    "14 a watch behind is waited for": (wrong(Setback.WATCH_BEHIND), Ruling.AGAIN, None),
    "15 an expired watch is listed again": (wrong(Setback.WATCH_EXPIRED), Ruling.AGAIN, None),
    "16 a create that timed out is adopted": (wrong(Setback.CREATE_TIMED_OUT), Ruling.AGAIN, None),
    "17 an empty pool is waited for": (wrong(Setback.POOL_EMPTY), Ruling.AGAIN, None),
    "17 an empty pool past the deadline refuses": (wrong(Setback.POOL_EMPTY, retry=False), Ruling.REFUSED, None),
    "18 an exceeded quota refuses": (wrong(Setback.QUOTA_EXCEEDED), Ruling.REFUSED, None),
    "19 with Redis down what runs goes on": (wrong(Setback.STORE_DOWN, running=True), Ruling.NOTHING, None),
    "19 with Redis down nothing new begins": (wrong(Setback.STORE_DOWN), Ruling.REFUSED, None),
    "20 an emptied Redis is filled again from the pods": (wrong(Setback.STORE_EMPTIED), Ruling.AGAIN, None),
    "20 two owners of one sandbox are ours": (
        wrong(Setback.AMBIGUOUS_OWNER, running=True),
        Ruling.MASKED,
        Cause.AMBIGUOUS_OWNER,
    ),
    "21 a stale route is resolved again": (call(Came.MISROUTED, retry=True), Ruling.AGAIN, None),
    "21 a route that stays wrong is ours": (call(Came.MISROUTED), Ruling.MASKED, Cause.MISROUTED),
    "21 a route that stays wrong before any call is a refusal": (
        call(Came.MISROUTED, first=True),
        Ruling.REFUSED,
        None,
    ),
    "22 a retry after a killed gateway gets the journaled result": (call(Came.RESULT), Ruling.RESULT, None),
    "22 a result that nobody can tell is ours": (call(Came.ANSWER_LOST), Ruling.MASKED, Cause.ANSWER_LOST),
    "23 the same call again gets the stored result": (wrong(Setback.CALL_REPEATED), Ruling.RESULT, None),
    "23 the same call id with other arguments is refused": (call(Came.CONFLICT), Ruling.REFUSED, None),
    "24 a call after the trainer's own end is refused": (
        CalledLate(Word.TRAINABLE, Cause.FINISHED),
        Ruling.REFUSED,
        None,
    ),
    "24 a call for a sealed sandbox is refused and never masked": (call(Came.SEALED, retry=True), Ruling.REFUSED, None),
    "24 a first call for a sealed sandbox gets no other one": (
        call(Came.SEALED, first=True, retry=True),
        Ruling.REFUSED,
        None,
    ),
    "24 a call after the model's own end says so": (
        CalledLate(Word.TRAINABLE, Cause.OUT_OF_MEMORY),
        Ruling.ENDED,
        Cause.OUT_OF_MEMORY,
    ),
    "24 a call after our failure is still our failure": (
        CalledLate(Word.MASKED, Cause.NODE_LOST),
        Ruling.MASKED,
        Cause.NODE_LOST,
    ),
    "24 a call after the trainer fell silent is refused": (
        CalledLate(Word.ABANDONED, Cause.TRAINER_SILENT),
        Ruling.REFUSED,
        None,
    ),
    "25 a cut before the first call was sent moves the rollout": (
        call(Came.NOT_SENT, first=True, retry=True),
        Ruling.AGAIN,
        None,
    ),
    "25 a cut before a later call was sent is tried again": (call(Came.NOT_SENT, retry=True), Ruling.AGAIN, None),
    "25 a sandbox that stays out of reach is ours": (call(Came.NOT_SENT), Ruling.MASKED, Cause.UNREACHABLE),
    "25 no sandbox in reach before the first call is a refusal": (
        call(Came.NOT_SENT, first=True),
        Ruling.REFUSED,
        None,
    ),
    "26 a cut after the call was sent, journal silent, is ours": (
        call(Came.ANSWER_LOST, first=True, retry=True),
        Ruling.MASKED,
        Cause.ANSWER_LOST,
    ),
    "26 a call interrupted from outside is ours": (
        call(Came.INTERRUPTED),
        Ruling.MASKED,
        Cause.STOPPED_FROM_OUTSIDE,
    ),
    "26 a call that the sandbox itself says never arrived is sent there again": (
        call(Came.UNHEARD, retry=True),
        Ruling.AGAIN,
        None,
    ),
    "26 a call of a dead gateway that never arrived is ours": (call(Came.UNHEARD), Ruling.MASKED, Cause.ANSWER_LOST),
    "1 a call that runs on after all the time a call may take is a tool result": (
        call(Came.RUNNING, timed_out=True),
        Ruling.RESULT,
        None,
    ),
    "a call that runs on when its caller has no more time may be asked for again": (
        call(Came.RUNNING),
        Ruling.REFUSED,
        None,
    ),
    "27 a time-out without the promised processors is ours": (
        timeout(stalled=9, used=1),
        Ruling.MASKED,
        Cause.CPU_STARVED,
    ),
    "27 waiting for processors that one's own loops take is the model's": (
        timeout(stalled=10, used=5),
        Ruling.RESULT,
        None,
    ),
    "27 waiting alone proves nothing": (timeout(stalled=10, used=None), Ruling.RESULT, None),
    "28 a name that does not resolve is tried again": (wrong(Setback.NAME_UNRESOLVED), Ruling.AGAIN, None),
    "29 clocks that differ have no effect": (wrong(Setback.CLOCKS_DIFFER, running=True), Ruling.NOTHING, None),
    "30 a refused key is ours": (call(Came.KEY_REFUSED, retry=True), Ruling.MASKED, Cause.KEY_REFUSED),
    "30 a key refused at the first call spends no further sandbox": (
        call(Came.KEY_REFUSED, first=True, retry=True),
        Ruling.REFUSED,
        None,
    ),
    "31 output lost without a mark is ours": (call(Came.OUTPUT_LOST), Ruling.MASKED, Cause.OUTPUT_LOST),
    "32 a grader that fails refuses, and leaves the verdict alone": (
        wrong(Setback.GRADER_FAILED),
        Ruling.REFUSED,
        None,
    ),
    "33 a restarted kubelet is not noticed": (wrong(Setback.NODE_AGENT_RESTARTED), Ruling.NOTHING, None),
    "34 a replaced gateway is not noticed": (wrong(Setback.GATEWAY_REPLACED), Ruling.NOTHING, None),
    "35 a silent trainer has abandoned its rollout": (
        wrong(Setback.TRAINER_SILENT, running=True),
        Ruling.ABANDONED,
        Cause.TRAINER_SILENT,
    ),
    "36 an unknown tool or bad arguments are a tool result": (call(Came.BAD), Ruling.RESULT, None),
    "too many calls at once are tried again": (call(Came.BUSY, retry=True), Ruling.AGAIN, None),
    "too many calls at once for too long are told to the model": (call(Came.BUSY), Ruling.RESULT, None),
    "as many calls as a sandbox takes are told to the model": (call(Came.FULL), Ruling.RESULT, None),
    "a call that a gateway marked and did not send is sent by the next": (
        call(Came.TAKEN_BACK, retry=True),
        Ruling.AGAIN,
        None,
    ),
    "the same without time left is refused": (call(Came.TAKEN_BACK), Ruling.REFUSED, None),
    "a fault of the toolserver is ours": (call(Came.FAULT), Ruling.MASKED, Cause.TOOLSERVER_FAULT),
    "a sandbox being stopped before its first call is exchanged": (
        call(Came.STOPPING, first=True, retry=True),
        Ruling.AGAIN,
        None,
    ),
    "a sandbox being stopped later is ours": (
        call(Came.STOPPING, retry=True),
        Ruling.MASKED,
        Cause.STOPPED_FROM_OUTSIDE,
    ),
    "a sandbox over its time with a rollout over its budget is the model's": (
        end(EndCause.DEADLINE, outlived_budget=True),
        Ruling.ENDED,
        Cause.BUDGET_SPENT,
    ),
    "a sandbox over its time before its rollout's budget is ours": (
        end(EndCause.DEADLINE),
        Ruling.MASKED,
        Cause.LIFETIME_OVER,
    ),
}


@pytest.mark.parametrize(("facts", "ruling", "cause"), TABLE.values(), ids=TABLE.keys())
def test_whose_fault_it_was(facts: Facts, ruling: Ruling, cause: Cause | None) -> None:
    judgement = judge(facts)

    assert (judgement.ruling, judgement.cause) == (ruling, cause)


def test_every_row_of_the_table_is_there() -> None:
    rows = {int(name.split()[0]) for name in TABLE if name[0].isdigit()}

    assert rows == set(range(1, 37))


@pytest.mark.parametrize(("came", "delivered", "retry"), list(product(Came, (True, False), (True, False))))
def test_every_call_is_judged_and_what_may_have_run_is_never_tried_again(
    came: Came, *, delivered: bool, retry: bool
) -> None:
    judgement = judge(CallCame(came, delivered=delivered, may_retry=retry))

    may_have_run = came in {Came.ANSWER_LOST, Came.OUTPUT_LOST, Came.INTERRUPTED, Came.FAULT}
    assert not (may_have_run and judgement.ruling is Ruling.AGAIN)
    assert not (judgement.ruling is Ruling.AGAIN and not retry)


@pytest.mark.parametrize("cause", EndCause)
@pytest.mark.parametrize("shield", Shield)
@pytest.mark.parametrize("silent", [True, False])
def test_every_ending_after_delivery_gives_a_verdict(cause: EndCause, shield: Shield, *, silent: bool) -> None:
    for exit_code in (None, 0, 1, CRASHED, EXIT_CRIPPLED, GVISOR_DIED, KILLED, EXIT_STOPPED):
        judgement = judge(end(cause, exit_code, shield=shield, node_silent=silent))

        assert judgement.word in {Word.TRAINABLE, Word.MASKED}
        assert judgement.cause
        assert judgement.cause.is_models == (judgement.word is Word.TRAINABLE)


@pytest.mark.parametrize("setback", Setback)
@pytest.mark.parametrize("running", [True, False])
def test_every_setback_is_judged(setback: Setback, *, running: bool) -> None:
    assert judge(wrong(setback, running=running, retry=False)).ruling


def test_only_a_verdict_has_a_word() -> None:
    words = {judge(facts).ruling: judge(facts).word for facts, _, _ in TABLE.values()}

    assert words == {
        Ruling.RESULT: None,
        Ruling.AGAIN: None,
        Ruling.REFUSED: None,
        Ruling.NOTHING: None,
        Ruling.ENDED: Word.TRAINABLE,
        Ruling.MASKED: Word.MASKED,
        Ruling.ABANDONED: Word.ABANDONED,
    }
