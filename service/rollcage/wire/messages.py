"""
The shapes of a toolserver's requests and answers.

Models only: they say what may be on the wire and nothing about what it means
for a rollout. Answers tolerate fields they do not know, because a sandbox may
run a newer toolserver than the gateway; requests do not.
"""

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

REPLAYED_HEADER: Final = "Rollcage-Replayed"
BOOT_HEADER: Final = "Rollcage-Boot"
MOST_CALLS_HEADER: Final = "Rollcage-Most-Calls"

# pydantic matches with Rust's engine, where $ is the very end and not the line before a newline.
CALL_ID_PATTERN: Final = r"^[A-Za-z0-9_.:-]{1,200}$"


class OutcomeClass(StrEnum):
    """How a call ended; each of them is the model's own doing."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    MALFORMED = "malformed"


class ErrorCode(StrEnum):
    """Why a toolserver gave no result."""

    BAD_REQUEST = "bad_request"
    UNSIGNED = "unsigned"
    BAD_TOKEN = "bad_token"  # noqa: S105 - a code, not a secret
    BAD_SIGNATURE = "bad_signature"
    UNKNOWN_KEY = "unknown_key"
    EXPIRED = "expired"
    WRONG_AUDIENCE = "wrong_audience"
    WRONG_SCOPE = "wrong_scope"
    NOT_FOUND = "not_found"
    UNKNOWN_CALL = "unknown_call"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BOUND_ELSEWHERE = "bound_elsewhere"
    CALL_CONFLICT = "call_conflict"
    RESTARTED = "restarted"
    RESULT_DROPPED = "result_dropped"
    SEALED = "sealed"
    TOO_LARGE = "too_large"
    FILE_ERROR = "file_error"
    INTERNAL = "internal"
    INTERRUPTED = "interrupted"
    NOT_READY = "not_ready"
    BUSY = "busy"
    JOURNAL_FULL = "journal_full"
    STOPPING = "stopping"

    @property
    def may_have_run(self) -> bool:
        """Whether the call behind this error may have had effects, now or when it was first made."""
        return self in {self.INTERNAL, self.INTERRUPTED, self.RESULT_DROPPED}


class _Request(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Call(_Request):
    """One tool invocation."""

    call_id: Annotated[str, Field(pattern=CALL_ID_PATTERN)]
    tool: str
    arguments: Any = Field(default_factory=dict)


class Pressure(_Answer):
    """How long the sandbox wanted a CPU and got none during the call, and how much it got."""

    source: str
    stalled_ms: int
    used_ms: int = 0


class Facts(_Answer):
    """What verdicts are made from, so that nobody has to read texts."""

    boot_id: str
    exit_code: int | None
    signal: str
    timed_out: bool
    truncated: bool
    output_bytes: int
    duration_ms: int
    peak_memory_bytes: int
    oom_kills: int
    pressure: Pressure


class Result(_Answer):
    """What a call came to: a text for the model, data for programs, facts for the record."""

    call_id: str
    tool: str
    outcome: Annotated[OutcomeClass, Field(alias="class")]
    output: str
    data: dict[str, Any]
    facts: Facts


class Refusal(_Answer):
    """An error's body. The code is kept as text, since a newer toolserver may know more of them."""

    code: str
    message: str


class Sealed(_Answer):
    """The answer to POST /v1/seal; *left* counts processes that not even SIGKILL has ended yet."""

    sealed: Literal[True]
    left: int


class ToolDefinition(_Answer):
    """One tool that a sandbox offers; *parameters* is a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class Tools(_Answer):
    """The answer to GET /v1/tools."""

    tools: tuple[ToolDefinition, ...]


class Setup(_Answer):
    """How far the environment's set-up commands got."""

    state: Literal["none", "running", "done", "failed"]
    output: str


class JournalSize(_Answer):
    """How much a sandbox remembers."""

    calls: int
    results_bytes: int


class Counters(_Answer):
    """What a sandbox has seen since it started."""

    calls: dict[str, int]
    replays: int
    conflicts: int
    misroutes_refused: int
    auth_failures: dict[str, int]
    busy: int
    internal_errors: int
    connections_refused: int


class State(_Answer):
    """A toolserver's own account of itself: what recovery is built on."""

    sandbox: str
    boot_id: str
    bound_to: str | None
    ready: bool
    sealed: bool = False
    setup: Setup
    journal: JournalSize
    counters: Counters
    started_at: str
    uptime_ms: int
