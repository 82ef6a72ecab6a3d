"""
The values that metric labels may have.

Every label is one of these, so that no trainer, model or typo can make a
metric grow without bound. What is counted under them stands in ``metrics``.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

# More environments than this share one value: a series per environment must stay affordable.
MOST_ENVIRONMENTS: Final = 200

OTHER: Final = "other"


class ToolLabel(StrEnum):
    """A tool: by name if it is built in, since the names of all others are chosen by somebody."""

    SHELL = "shell"
    SESSION_CREATE = "session_create"
    SESSION_RUN = "session_run"
    SESSION_INTERRUPT = "session_interrupt"
    SESSION_CLOSE = "session_close"
    READ_FILE = "read_file"
    WRITE_FILE = "write_file"
    LIST = "list"
    SEARCH = "search"
    CUSTOM = "custom"
    UNKNOWN = "unknown"


class OutcomeLabel(StrEnum):
    """How a call ended: the model's own doing down to ``malformed``, ours from ``infra`` on."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    MALFORMED = "malformed"
    REFUSED = "refused"
    INFRA = "infra"


class RefusalLabel(StrEnum):
    """Why a call was left without a result while its rollout may go on: the codes of those refusals."""

    NO_SANDBOX = "no_sandbox"
    CLAIM_TIMED_OUT = "claim_timed_out"
    QUEUE_FULL = "queue_full"
    STILL_RUNNING = "still_running"
    STORE_UNAVAILABLE = "store_unavailable"
    STORE_RECOVERING = "store_recovering"
    INTERNAL = "internal"


class StartLabel(StrEnum):
    """Why a sandbox did not start, as the status of its environment has it."""

    IMAGE_PULL_FAILED = "ImagePullFailed"
    UNSCHEDULABLE = "Unschedulable"
    START_FAILED = "StartFailed"
    SETUP_FAILED = "SetupFailed"
    QUOTA_EXCEEDED = "QuotaExceeded"
    REJECTED = "Rejected"


class PoolLabel(StrEnum):
    """What is counted of a warm pool."""

    WANTED = "wanted"
    READY = "ready"
    STARTING = "starting"
    CLAIMED = "claimed"
    RESERVED = "reserved"
    MOST = "most"  # its bound; what is claimed counts


class DialectLabel(StrEnum):
    """In which language a request came; what the cluster itself asks is nobody's work."""

    AGENT_RFT = "agent_rft"
    NATIVE = "native"
    OPERATIONS = "operations"


class StatusLabel(StrEnum):
    """What kind of status was answered."""

    OK = "2xx"
    MOVED = "3xx"
    REFUSED = "4xx"
    FAILED = "5xx"


class GradeLabel(StrEnum):
    """What a request for a score came to; all but the first are answered with an error, never with a score."""

    SCORED = "scored"
    MASKED = "masked"  # the infrastructure failed the rollout
    GRADER_FAILED = "grader_failed"
    TIMED_OUT = "timed_out"
    NO_NUMBER = "no_number"
    REFUSED = "refused"  # for any other reason: no grader, no such rollout, Redis away


class AuthLabel(StrEnum):
    """Why somebody was not let in."""

    MISSING = "missing"
    WRONG = "wrong"


class LimitLabel(StrEnum):
    """Which bound turned a request away."""

    IN_FLIGHT = "in_flight"
    TENANT = "tenant"
    BODY = "body"


class ReloadLabel(StrEnum):
    """What came of reading a file again."""

    TAKEN = "taken"
    REFUSED = "refused"


class ArchiveLabel(StrEnum):
    """What came of writing a rollout to the archive; one that failed is tried again."""

    WRITTEN = "written"
    FAILED = "failed"


class SpanLabel(StrEnum):
    """Why a span was never seen by whoever collects them."""

    QUEUE_FULL = "queue_full"
    NOT_TAKEN = "not_taken"


class Environments:
    """The environments that have a value of their own; all others share one."""

    def __init__(self) -> None:
        self._known: frozenset[str] = frozenset()

    def know(self, names: Collection[str]) -> None:
        """Give these environments values of their own, the first of them by name if there are too many."""
        self._known = frozenset(sorted(names)[:MOST_ENVIRONMENTS])

    def __call__(self, name: str) -> str:
        """Return the label's value for an environment."""
        return name if name in self._known else OTHER


def tool_label(tool: str, *, custom: Collection[str]) -> ToolLabel:
    """Return the label's value for a tool that was called, *custom* being those of the environment."""
    if tool in custom:
        return ToolLabel.CUSTOM
    try:
        return _TOOLS[tool]
    except KeyError:
        return ToolLabel.UNKNOWN


def refusal_label(code: str) -> RefusalLabel:
    """Return the label's value for an error's code; one that is not known here is nobody's plan."""
    return RefusalLabel(code) if code in _REFUSALS else RefusalLabel.INTERNAL


def status_label(status: int) -> StatusLabel:
    """Return the label's value for an HTTP status."""
    return _STATUSES[status // 100]


_TOOLS: Final = {label.value: label for label in ToolLabel if label not in {ToolLabel.CUSTOM, ToolLabel.UNKNOWN}}
_REFUSALS: Final = frozenset(RefusalLabel)
_STATUSES: Final = {int(label[0]): label for label in StatusLabel}
