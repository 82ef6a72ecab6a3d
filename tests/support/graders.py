"""
Contexts for graders, without a rollout: an answer, an item, steps, artifacts, and a sandbox that says what it is told.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from rollcage.core.graders import read_grader
from rollcage.grading import Answer, Artifacts, Context, Ran, Score, Step
from rollcage.grading.builtins import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class ScriptedSandbox:
    """Answers with what the test says, and remembers what it was asked."""

    ran: Ran = field(default_factory=lambda: Ran("", 0))
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def run(self, command: str, **told: Any) -> Ran:
        self.asked.append((command, told))
        return self.ran


def step(tool: str = "shell", arguments: Any = None, *, number: int = 1, outcome: str = "ok", output: str = "") -> Step:
    """Return a call that took a second, one minute after the one before."""
    begun = NOON + timedelta(minutes=number - 1)
    ended = begun + timedelta(seconds=1)
    return Step(number, f"c{number}", tool, arguments or {}, begun, ended, outcome, output, {}, {})


def context(answer: Any = "", item: Mapping[str, Any] | None = None, **fields: Any) -> Context:
    """Return a context; an answer that is no text is JSON."""
    given = Answer(answer) if isinstance(answer, str) else Answer("", answer)
    return Context(
        **{
            "answer": given,
            "item": item or {},
            "trajectory": (),
            "verdict": {},
            "artifacts": Artifacts(),
            "sandbox": ScriptedSandbox(),
            **fields,
        }
    )


def files(**named: str) -> Artifacts:
    """Return artifacts: one directory of texts, ``__`` for a dot."""
    return Artifacts({".": {name.replace("__", "."): text.encode() for name, text in named.items()}})


def score(grader: Mapping[str, Any], given: Context) -> Score:
    """Return what a grader says."""
    return asyncio.run(evaluate(read_grader(grader), given))
