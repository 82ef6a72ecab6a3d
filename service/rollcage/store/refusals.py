"""
Turn a script's refusal into the error that says it.

A script refuses with its code and the facts, in the order given here; nothing
else in an answer is looked at.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from rollcage.core.errors import (
    CallConflict,
    CallUnknown,
    MayHaveRun,
    NotLeader,
    OverQuota,
    QueueFull,
    RecordFull,
    RestoreConflict,
    RollcageError,
    RolloutEnded,
    RolloutMoved,
    RolloutUnknown,
    SchemaMismatch,
    StoreRecovering,
)

_REFUSED: Final = b"refused"

_ERRORS: Final[Mapping[str, Callable[..., RollcageError]]] = MappingProxyType(
    {
        "call_conflict": lambda rollout, call: CallConflict(rollout=rollout, call=call),
        "call_unknown": lambda rollout, call: CallUnknown(rollout=rollout, call=call),
        "may_have_run": lambda sandbox: MayHaveRun(sandbox=sandbox),
        "not_leader": lambda epoch, leader: NotLeader(epoch=int(epoch), leader=int(leader)),
        "over_quota": lambda wanted, held, quota: OverQuota(wanted=int(wanted), held=int(held), quota=int(quota)),
        "queue_full": lambda environment, waiting, limit: QueueFull(
            environment=environment, waiting=int(waiting), limit=int(limit)
        ),
        "record_full": lambda calls, size: RecordFull(calls=int(calls), size=int(size)),
        "restore_conflict": lambda sandbox, told, recorded_rollout, recorded_sandbox: RestoreConflict(
            sandbox=sandbox,
            told_rollout=told,
            recorded_rollout=recorded_rollout,
            recorded_sandbox=recorded_sandbox,
        ),
        "rollout_ended": lambda verdict, cause: RolloutEnded(verdict=verdict, cause=cause),
        "rollout_moved": lambda thought, sandbox: RolloutMoved(thought=thought, sandbox=sandbox),
        "rollout_unknown": lambda rollout: RolloutUnknown(rollout=rollout),
        "schema_mismatch": lambda found, ours: SchemaMismatch(found=found, ours=ours),
        "store_recovering": lambda *_: StoreRecovering("bindings are not yet restored"),
    }
)


def refusal(answer: Any) -> RollcageError | None:
    """Return the error that a script refused with, or None if it did not refuse."""
    if not isinstance(answer, list) or not answer or answer[0] != _REFUSED:
        return None
    code, *facts = (part.decode() for part in answer[1:])
    return _ERRORS[code](*facts)


def granted(answer: list[Any]) -> list[Any]:
    """Return a script's answer, or raise what it refused with."""
    if refused := refusal(answer):
        raise refused
    return answer
