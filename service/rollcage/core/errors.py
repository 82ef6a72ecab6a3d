"""
The errors that cross from one package to another.

Each says what is true now, carries the facts as fields, and has a code that
never changes. Libraries' errors become one of these where the library is
called; what a trainer is told about them is the dialects' business.
"""

from typing import ClassVar


class RollcageError(Exception):
    """Whatever Rollcage raises on purpose."""

    code: ClassVar[str] = "rollcage_error"


class StoreUnavailable(RollcageError):
    """Redis did not answer. Whether it did what was asked is not known; asking again is safe."""

    code = "store_unavailable"


class StoreRecovering(RollcageError):
    """Redis lost its memory, and the bindings are not yet restored; nothing new is begun."""

    code = "store_recovering"


class SchemaMismatch(RollcageError):
    """The data in Redis belongs to a release that this one cannot share it with."""

    code = "schema_mismatch"

    def __init__(self, *, found: str, ours: str) -> None:
        super().__init__(f"the store holds schema {found}, this release writes {ours}")
        self.found = found
        self.ours = ours


class NotLeader(RollcageError):
    """A newer leader has written already; the older one changed nothing."""

    code = "not_leader"

    def __init__(self, *, epoch: int, leader: int) -> None:
        super().__init__(f"epoch {epoch} is over, {leader} leads")
        self.epoch = epoch
        self.leader = leader


class QueueFull(RollcageError):
    """As many rollouts wait as may wait; this one does not."""

    code = "queue_full"

    def __init__(self, *, environment: str, waiting: int, limit: int) -> None:
        super().__init__(f"{waiting} rollouts wait for {environment}, {limit} may")
        self.environment = environment
        self.waiting = waiting
        self.limit = limit


class ClaimTimedOut(RollcageError):
    """No sandbox was free in time. The rollout no longer waits and keeps its place for a retry."""

    code = "claim_timed_out"

    def __init__(self, *, environment: str, waited: float, retry_after: float) -> None:
        super().__init__(f"no sandbox of {environment} in {waited:g} s")
        self.environment = environment
        self.waited = waited
        self.retry_after = retry_after


class OverQuota(RollcageError):
    """The reservation would hold more than the tenant may; nothing was reserved."""

    code = "over_quota"

    def __init__(self, *, wanted: int, held: int, quota: int) -> None:
        super().__init__(f"{wanted} more beside {held} is over the quota of {quota}")
        self.wanted = wanted
        self.held = held
        self.quota = quota


class RolloutEnded(RollcageError):
    """The rollout has its verdict; no call is begun for it and no sandbox is given."""

    code = "rollout_ended"

    def __init__(self, *, verdict: str, cause: str) -> None:
        super().__init__(f"the rollout is over: {verdict or 'no verdict'}{cause and f' ({cause})'}")
        self.verdict = verdict
        self.cause = cause


class RolloutUnknown(RollcageError):
    """Nothing is recorded under this rollout: it never began, or it was too long ago."""

    code = "rollout_unknown"

    def __init__(self, *, rollout: str) -> None:
        super().__init__(f"nothing is known of rollout {rollout}")
        self.rollout = rollout


class RolloutMoved(RollcageError):
    """The rollout is not in the sandbox that the caller thought; nothing was begun."""

    code = "rollout_moved"

    def __init__(self, *, thought: str, sandbox: str) -> None:
        super().__init__(f"thought in {thought or 'some sandbox'}, is in {sandbox or 'none'}")
        self.thought = thought
        self.sandbox = sandbox


class MayHaveRun(RollcageError):
    """A call may have reached the sandbox, so the rollout cannot be moved to another one."""

    code = "may_have_run"

    def __init__(self, *, sandbox: str) -> None:
        super().__init__(f"a call may have reached {sandbox}")
        self.sandbox = sandbox


class CallConflict(RollcageError):
    """The call id was used before with other arguments; the first call stands."""

    code = "call_conflict"

    def __init__(self, *, rollout: str, call: str) -> None:
        super().__init__(f"call {call} was made with other arguments")
        self.rollout = rollout
        self.call = call


class CallUnknown(RollcageError):
    """The call was never begun, or was taken back; there is nothing to finish."""

    code = "call_unknown"

    def __init__(self, *, rollout: str, call: str) -> None:
        super().__init__(f"call {call} was not begun")
        self.rollout = rollout
        self.call = call


class RecordFull(RollcageError):
    """The rollout's record holds as much as it may; the call was not begun."""

    code = "record_full"

    def __init__(self, *, calls: int, size: int) -> None:
        super().__init__(f"the record holds {calls} calls and {size} bytes")
        self.calls = calls
        self.size = size


class RestoreConflict(RollcageError):
    """Pod and record tell of different owners; both accounts are kept as evidence, nothing was changed."""

    code = "restore_conflict"

    def __init__(self, *, sandbox: str, told_rollout: str, recorded_rollout: str, recorded_sandbox: str) -> None:
        super().__init__(f"{sandbox} tells of {told_rollout}, the record does not")
        self.sandbox = sandbox
        self.told_rollout = told_rollout
        self.recorded_rollout = recorded_rollout
        self.recorded_sandbox = recorded_sandbox
