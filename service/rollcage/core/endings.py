"""
How a sandbox can end, in the words that sources use and verdicts are made from.

Only the words. Reading an ending off a pod or a process is a source's work,
and what it means for a rollout is decided in ``verdicts``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class EndCause(StrEnum):
    """Who or what ended a sandbox, as far as the source itself can tell."""

    EXITED = "exited"
    OUT_OF_MEMORY = "out_of_memory"
    OWN_STORAGE_LIMIT = "own_storage_limit"
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    DEADLINE = "deadline"
    DELETED = "deleted"
    NODE_LOST = "node_lost"
    START_FAILED = "start_failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a sandbox ended, kept as evidence."""

    cause: EndCause
    exit_code: int | None = None
    message: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
