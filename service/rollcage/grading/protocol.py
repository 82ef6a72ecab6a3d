"""
What a grader is given and what it gives: ``async def grade(context: Context) -> Score``, or a plain function.

Values, and the handle on sandboxes. Everything that comes from the model (the
answer, arguments, outputs, artifacts) is hostile: read it, never run it here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, Self

from rollcage.grading.artifacts import Artifacts

# Serializers give up at a few hundred, and a model must not choose when.
_DEEPEST: Final = 64


class Refused(Exception):
    """Raised by a grader that cannot tell: the rollout gets no score, instead of a wrong one."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score, what it is made of, and what people should know about it."""

    value: float
    parts: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The model's final answer. *json* is None unless the trainer sent one or the text is JSON."""

    text: str
    json: Any = None

    @classmethod
    def of(cls, text: str, json: Any) -> Self:
        """Make an answer of what a trainer sent; JSON nested deeper than anybody's format is none."""
        return cls(text, json if _is_shallow(json) else None)


@dataclass(frozen=True, slots=True)
class Step:
    """One call of the trajectory; without an outcome its result is not known."""

    number: int
    call_id: str
    tool: str
    arguments: Any
    begun_at: datetime
    finished_at: datetime | None
    outcome: str | None
    output: str | None
    data: Mapping[str, Any]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to in a fresh sandbox. *ended*: it took its sandbox down with it."""

    output: str
    exit_code: int | None
    timed_out: bool = False
    ended: bool = False
    # The files that were asked for; those that are not there are missing.
    files: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether the command ended by itself, with exit code 0."""
        return self.exit_code == 0 and not self.timed_out and not self.ended


class Sandbox(Protocol):
    """Fresh sandboxes, each used for one command."""

    async def run(
        self,
        command: str,
        *,
        artifacts: Artifacts | None = None,
        files: Mapping[str, bytes] | None = None,
        collect: tuple[str, ...] = (),
        collect_trees: tuple[str, ...] = (),
        environment: str | None = None,
        timeout_seconds: int = 120,
    ) -> Ran:
        """
        Run a command in a fresh sandbox of the rollout's environment, or of another.

        It is given *artifacts*, then *files* over them; *collect* names files to bring back,
        *collect_trees* directories. What the infrastructure breaks ends the grading, caught or not.
        """


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that is known of a rollout."""

    answer: Answer
    item: Mapping[str, Any]
    trajectory: tuple[Step, ...]
    # word, cause, placements, evidence: how the rollout ended, and what the infrastructure did meanwhile.
    verdict: Mapping[str, Any]
    artifacts: Artifacts
    sandbox: Sandbox
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def wall_seconds(self) -> float:
        """From the first call's begin to the last one's end."""
        begun = [step.begun_at for step in self.trajectory]
        ended = [step.finished_at or step.begun_at for step in self.trajectory]
        return (max(ended) - min(begun)).total_seconds() if begun else 0.0


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False
