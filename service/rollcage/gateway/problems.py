"""
What an error is called over HTTP: the one place where codes become statuses.

Problem details (RFC 9457) with the error's own stable code. What a dialect
makes of a status that its trainer cannot bear is the dialect's business.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from rollcage.core.errors import RollcageError

MEDIA_TYPE: Final = "application/problem+json"
INTERNAL: Final = "internal"

# Every code that can reach a client. A code that is missing is our own fault, and a 500.
STATUSES: Final[Mapping[str, HTTPStatus]] = MappingProxyType(
    {
        # The request is wrong.
        "bad_id": HTTPStatus.BAD_REQUEST,
        "bad_request": HTTPStatus.BAD_REQUEST,
        "not_authorized": HTTPStatus.UNAUTHORIZED,
        "no_such_route": HTTPStatus.NOT_FOUND,
        "environment_unknown": HTTPStatus.NOT_FOUND,
        "rollout_unknown": HTTPStatus.NOT_FOUND,
        "run_unknown": HTTPStatus.NOT_FOUND,
        "call_unknown": HTTPStatus.NOT_FOUND,
        "wrong_method": HTTPStatus.METHOD_NOT_ALLOWED,
        "body_too_slow": HTTPStatus.REQUEST_TIMEOUT,
        "call_conflict": HTTPStatus.CONFLICT,
        "record_full": HTTPStatus.CONFLICT,
        "grade_conflict": HTTPStatus.CONFLICT,
        "rollout_ended": HTTPStatus.GONE,
        "arguments_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "body_encoded": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "file_error": HTTPStatus.UNPROCESSABLE_ENTITY,
        # Too much of it.
        "over_quota": HTTPStatus.TOO_MANY_REQUESTS,
        "tenant_busy": HTTPStatus.TOO_MANY_REQUESTS,
        # Ours.
        "overloaded": HTTPStatus.SERVICE_UNAVAILABLE,
        "queue_full": HTTPStatus.SERVICE_UNAVAILABLE,
        "claim_timed_out": HTTPStatus.SERVICE_UNAVAILABLE,
        "store_unavailable": HTTPStatus.SERVICE_UNAVAILABLE,
        "store_recovering": HTTPStatus.SERVICE_UNAVAILABLE,
        "schema_mismatch": HTTPStatus.SERVICE_UNAVAILABLE,
        "rollout_moved": HTTPStatus.SERVICE_UNAVAILABLE,
        "masked": HTTPStatus.SERVICE_UNAVAILABLE,
        "no_sandbox": HTTPStatus.SERVICE_UNAVAILABLE,
        "sandbox_unreachable": HTTPStatus.SERVICE_UNAVAILABLE,
        "still_running": HTTPStatus.SERVICE_UNAVAILABLE,
        "may_have_run": HTTPStatus.SERVICE_UNAVAILABLE,
        "restore_conflict": HTTPStatus.SERVICE_UNAVAILABLE,
        # No score, and no zero either.
        "no_grader": HTTPStatus.SERVICE_UNAVAILABLE,
        "grader_crashed": HTTPStatus.SERVICE_UNAVAILABLE,
        "grader_timed_out": HTTPStatus.SERVICE_UNAVAILABLE,
        "grader_refused": HTTPStatus.SERVICE_UNAVAILABLE,
        "graders_busy": HTTPStatus.SERVICE_UNAVAILABLE,
        "score_invalid": HTTPStatus.SERVICE_UNAVAILABLE,
        "artifacts_missing": HTTPStatus.SERVICE_UNAVAILABLE,
        "grading_sandbox_failed": HTTPStatus.SERVICE_UNAVAILABLE,
        "rollout_abandoned": HTTPStatus.SERVICE_UNAVAILABLE,
    }
)

# A trainer that is told nothing better comes back after so many seconds.
_RETRY_AFTER: Final = 1.0
_RETRIED: Final = frozenset({"queue_full", "store_unavailable", "store_recovering", "rollout_moved"})


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as a client is told of it."""

    status: int
    code: str
    detail: str
    retry_after: float | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the members of the problem details."""
        return {
            "type": f"urn:rollcage:problem:{self.code}",
            "title": self.code.replace("_", " ").capitalize(),
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            **self.facts,
        }

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that say when to come back, or how to come in."""
        headers = []
        if self.retry_after is not None:
            headers.append((b"retry-after", str(max(1, round(self.retry_after))).encode()))
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b'Bearer realm="rollcage"'))
        return headers


def problem_of(error: Exception) -> Problem:
    """Return what a client is told of *error*; whatever was not raised on purpose says nothing about itself."""
    status = STATUSES.get(error.code) if isinstance(error, RollcageError) else None
    if not isinstance(error, RollcageError) or status is None:
        return Problem(HTTPStatus.INTERNAL_SERVER_ERROR, INTERNAL, "the gateway has a fault; it is in its log")
    ours = status >= HTTPStatus.INTERNAL_SERVER_ERROR
    # What we say of ourselves is written for outsiders; an error's own text may name hosts and keys.
    detail = _promise(error) if ours else str(error) or _promise(error)
    given: float | None = getattr(error, "retry_after", None)
    retry_after = _RETRY_AFTER if given is None and error.code in _RETRIED else given
    return Problem(status, error.code, detail, retry_after, _facts(error))


def _promise(error: RollcageError) -> str:
    return (type(error).__doc__ or error.code).strip().splitlines()[0].rstrip(".")


def _facts(error: RollcageError) -> Mapping[str, Any]:
    cause = getattr(error, "cause", None)
    return {"cause": str(cause)} if cause else {}
