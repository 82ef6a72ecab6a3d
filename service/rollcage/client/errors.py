"""
What a client is told when something did not work, by the service's own codes.

Every code has one class. Catch a class for what to do about it (``Masked``:
drop the rollout; ``Unavailable``: later; ``Rejected``: mend the request), or
look at ``code``, which never changes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class ClientError(Exception):
    """Whatever the client raises on purpose."""


class Unreachable(ClientError):
    """No answer came. *sent* says whether the service may have seen the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class BadAnswer(ClientError):
    """Something answered that does not speak this API, or not this release of it."""


class UnsafeArchive(ClientError):
    """A directory came out of a sandbox with an entry that would lie elsewhere."""


class ServiceError(ClientError):
    """The service refused; *code* says why, *detail* says it to people."""

    def __init__(
        self, *, status: int, code: str, detail: str, cause: str | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.status = status
        self.code = code
        self.detail = detail
        self.cause = cause
        self.retry_after = retry_after


class Rejected(ServiceError):
    """The request itself is wrong; sent again it will be refused again."""


class NotAuthorized(Rejected):
    """No token, or one that nobody has."""


class NotFound(Rejected):
    """There is no such thing."""


class EnvironmentUnknown(NotFound):
    """No environment of this name."""


class RolloutUnknown(NotFound):
    """Nothing is recorded under this rollout."""


class RunUnknown(NotFound):
    """Nothing is recorded under this run."""


class CallConflict(Rejected):
    """The call id was used before with other arguments; the first call stands."""


class RolloutEnded(Rejected):
    """The rollout has its verdict; nothing more is done in it."""


class FileRefused(Rejected):
    """The sandbox's file system does not allow it."""


class TooLarge(Rejected):
    """More bytes than are taken here."""


class OverQuota(Rejected):
    """More than the tenant may hold; nothing was reserved."""


class Masked(ServiceError):
    """The infrastructure failed this rollout, by *cause*: no grade, no training, no retry."""


class Unavailable(ServiceError):
    """Not now. Where that is safe, the client has tried again already."""


class Busy(Unavailable):
    """As much is in flight as may be."""


class StillRunning(ServiceError):
    """The call runs on; the same call id again gets its result."""


class NotGraded(ServiceError):
    """There is no score, and no zero either: the grader failed or has nothing to grade."""


class ServiceFault(ServiceError):
    """The service has a fault, or cannot do this; trying again will not help."""


CLASSES: Final[Mapping[str, type[ServiceError]]] = MappingProxyType(
    {
        "bad_id": Rejected,
        "bad_request": Rejected,
        "wrong_method": Rejected,
        "body_too_slow": Rejected,
        "body_encoded": Rejected,
        "record_full": Rejected,
        "not_authorized": NotAuthorized,
        "no_such_route": NotFound,
        "call_unknown": NotFound,
        "environment_unknown": EnvironmentUnknown,
        "rollout_unknown": RolloutUnknown,
        "run_unknown": RunUnknown,
        "call_conflict": CallConflict,
        "rollout_ended": RolloutEnded,
        "file_error": FileRefused,
        "arguments_too_large": TooLarge,
        "body_too_large": TooLarge,
        "over_quota": OverQuota,
        "tenant_busy": Busy,
        "overloaded": Busy,
        "queue_full": Busy,
        "claim_timed_out": Unavailable,
        "no_sandbox": Unavailable,
        "store_unavailable": Unavailable,
        "store_recovering": Unavailable,
        "rollout_moved": Unavailable,
        "sandbox_unreachable": Unavailable,
        "still_running": StillRunning,
        "masked": Masked,
        "may_have_run": ServiceFault,
        "restore_conflict": ServiceFault,
        "schema_mismatch": ServiceFault,
        "grade_conflict": Rejected,
        "graders_busy": Busy,
        "grading_sandbox_failed": Unavailable,
        "no_grader": NotGraded,
        "grader_crashed": NotGraded,
        "grader_timed_out": NotGraded,
        "grader_refused": NotGraded,
        "score_invalid": NotGraded,
        "artifacts_missing": NotGraded,
        "rollout_abandoned": NotGraded,
        "internal": ServiceFault,
    }
)

# What a proxy in front of the service answers with when the service does not; it has no code of ours.
_PROXY_STATUSES: Final = frozenset({502, 503, 504})
_SERVERS_FAULT: Final = 500
_NO_SUCH_THING: Final = 404


def error_of(
    status: int, code: str | None, detail: str, *, cause: str | None = None, retry_after: float | None = None
) -> ServiceError:
    """Return the error that an answer means; a code of a later release falls back on its status."""
    kind = CLASSES.get(code or "")
    if kind is None:
        kind = _by_status(status)
    return kind(status=status, code=code or f"http_{status}", detail=detail, cause=cause, retry_after=retry_after)


def _by_status(status: int) -> type[ServiceError]:
    if status in _PROXY_STATUSES:
        return Unavailable
    if status == _NO_SUCH_THING:
        return NotFound
    return ServiceFault if status >= _SERVERS_FAULT else Rejected
