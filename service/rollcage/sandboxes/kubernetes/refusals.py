"""
Turn the API server's refusals into ours, once.

Pure: a status code, headers and a body go in, an error comes out. Whether a
refusal matters is decided by whoever made the request.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.errors import RollcageError
from rollcage.sandboxes.source import QuotaExceeded, SandboxRejected, SourceThrottled, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

# What a server that throttles without saying for how long most likely means.
_RETRY_AFTER: Final = 1.0
_MOST_TEXT: Final = 2048

_FORBIDDEN: Final = 403
_CONFLICT: Final = 409
_TOO_MANY: Final = 429
_SERVER_ERRORS: Final = 500


class NotThere(RollcageError):
    """The API server has no such object."""

    code = "not_there"


class Conflict(RollcageError):
    """The object is not as the request says it is; nothing was changed. *reason* is the API server's own word."""

    code = "conflict"

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason

    @property
    def already_exists(self) -> bool:
        """Whether an object of that name is there; else somebody else changed something meanwhile."""
        return self.reason == "AlreadyExists"


class Expired(RollcageError):
    """The API server no longer remembers the version that was asked for; only a new list helps."""

    code = "expired"


# A wrong or expired token is ours to renew; the request itself may be fine.
_PLAIN: Final[dict[int, type[RollcageError]]] = {
    401: SourceUnavailable,
    404: NotThere,
    408: SourceUnavailable,
    410: Expired,
}


def refusal(status: int, headers: Mapping[str, str], body: bytes | str) -> RollcageError:
    """Return the error that an answer with a status code of 400 or more is."""
    told = _told(body)
    message = f"{status} {told.get('reason') or ''}: {told.get('message') or ''}"[:_MOST_TEXT]
    if status in _PLAIN:
        return _PLAIN[status](message)
    if status == _CONFLICT:
        return Conflict(message, reason=told.get("reason", ""))
    if status == _TOO_MANY:
        return SourceThrottled(message, retry_after=_seconds(headers))
    if status >= _SERVER_ERRORS:
        return SourceUnavailable(message)
    # The API server has no field for it: quota admission writes this text, unchanged since 2015.
    if status == _FORBIDDEN and "exceeded quota:" in told.get("message", ""):
        return QuotaExceeded(message)
    return SandboxRejected(message)


def _told(body: bytes | str) -> dict[str, Any]:
    """Return the Status object of an answer, or what comes nearest: proxies answer too, in their own words."""
    try:
        told = json.loads(body)
    except ValueError:
        told = body if isinstance(body, str) else body.decode(errors="replace")
    return told if isinstance(told, dict) else {"message": str(told)}


def _seconds(headers: Mapping[str, str]) -> float:
    try:
        return max(0.0, float(headers.get("Retry-After", "")))
    except ValueError:
        return _RETRY_AFTER
