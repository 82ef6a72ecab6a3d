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


class PoolLabel(StrEnum):
    """What is counted of a warm pool."""

    WANTED = "wanted"
    READY = "ready"
    STARTING = "starting"
    CLAIMED = "claimed"


class DialectLabel(StrEnum):
    """In which language a request came."""

    AGENT_RFT = "agent_rft"
    NATIVE = "native"


class StatusLabel(StrEnum):
    """What kind of status was answered."""

    OK = "2xx"
    MOVED = "3xx"
    REFUSED = "4xx"
    FAILED = "5xx"


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


def status_label(status: int) -> StatusLabel:
    """Return the label's value for an HTTP status."""
    return _STATUSES[status // 100]


_TOOLS: Final = {label.value: label for label in ToolLabel if label not in {ToolLabel.CUSTOM, ToolLabel.UNKNOWN}}
_STATUSES: Final = {int(label[0]): label for label in StatusLabel}
