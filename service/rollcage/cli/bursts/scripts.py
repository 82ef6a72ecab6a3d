"""
What scripted rollouts do: behave, spoil their own sandbox, or lose it to somebody else.

Values only. What may be destroyed depends on what holds a sandbox in, so
whoever composes a burst has to say whether its sandboxes have a root of their own.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

# The dataset's row that every rollout works on.
ITEM: Final = {"question": "What is six times seven?", "answer": "42"}

# Each grading starts a process: enough to see honest ones and honest zeros, not enough to make a laptop wait.
_GRADED_GOOD: Final = 4


class Means(StrEnum):
    """How a sandbox is taken away from outside."""

    KILL = "kill"  # its first process gets SIGKILL
    DELETE = "delete"  # somebody removes it, as kubectl delete would


class Timing(StrEnum):
    """When that happens."""

    BETWEEN = "between calls"
    DURING = "during a call"


@dataclass(frozen=True, slots=True)
class Strike:
    """What happens to a rollout's sandbox at its last call."""

    means: Means
    timing: Timing


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call, and by what its answer is known to be right."""

    arguments: Mapping[str, Any]
    tool: str = "shell"
    shows: str = ""
    """What the output must contain."""
    is_exactly: str | None = None
    """What the output must be, if that is known."""
    sent_twice: bool = False
    """Whether the trainer sends it again, as after a lost answer: it must not run again."""

    def is_answered_by(self, output: str) -> bool:
        """Tell whether this is what the call should come to."""
        return self.shows in output and self.is_exactly in {None, output}


@dataclass(frozen=True, slots=True)
class Script:
    """One rollout."""

    title: str
    calls: tuple[Call, ...]
    rollout: str = field(default_factory=lambda: f"trace_{secrets.token_hex(16)}")
    spoils: bool = False
    """Whether the model does something bad; it is trained on all the same."""
    strike: Strike | None = None
    answer: str = ""
    """What the model says in the end; a score is asked for if it says something."""

    @property
    def deserves(self) -> float:
        """The score that its answer should get."""
        return float(self.answer == ITEM["answer"])


def shell(command: str, *, shows: str = "", is_exactly: str | None = None, **arguments: Any) -> Call:
    """Return a call of the shell."""
    return Call({"command": command, **arguments}, shows=shows, is_exactly=is_exactly)


# Says nothing in a sandbox that nobody has used before.
_MARK: Final = shell("cat mark 2>/dev/null; echo $$ >> mark", is_exactly="")
_STILL_THERE: Final = shell("wc -l < mark", is_exactly="1\n")


def behaving(*, answer: str = "") -> Script:
    """Return a rollout that works on a file, and whose trainer repeats a call."""
    text = secrets.token_hex(8)
    return Script(
        "does its work",
        (
            _MARK,
            Call({"path": "notes", "content": text}, tool="write_file"),
            Call({"command": "echo once >> count; wc -l < count"}, is_exactly="1\n", sent_twice=True),
            Call({"path": "notes"}, tool="read_file", shows=text),
            _STILL_THERE,
        ),
        answer=answer,
    )


def spoiling(title: str, *calls: Call) -> Script:
    """Return a rollout whose model does something bad, and goes on afterwards."""
    last = shell("echo still here", is_exactly="still here\n")
    return Script(title, (_MARK, *calls, last), spoils=True, answer="I have no idea.")


def struck(means: Means, timing: Timing) -> Script:
    """Return a rollout that loses its sandbox to somebody else."""
    last = shell("sleep 300") if timing is Timing.DURING else _STILL_THERE
    title = f"{'sandbox killed' if means is Means.KILL else 'sandbox deleted'} {timing}"
    return Script(title, (_MARK, last), strike=Strike(means, timing), answer="My tools are gone.")


# Harmless wherever they run.
_ANYWHERE: Final[tuple[Callable[[], Script], ...]] = (
    lambda: spoiling("runs into its own time limit", shell("sleep 300", shows="timed out", timeout_ms=500)),
    lambda: spoiling("exits with 137, like a dead pod", shell("sh -c 'kill -9 $$'; exit $?", shows="137")),
    lambda: spoiling(
        "wants more memory than it has", shell("dd if=/dev/zero of=/dev/null bs=1G count=1", shows="exit code")
    ),
    lambda: spoiling("floods its output", shell("yes | head -c 3000000", shows="left out")),
    lambda: spoiling("calls a tool that is not there", Call({}, tool="teleport", shows="teleport")),
    lambda: spoiling("sends arguments that are none", Call({"cmd": "ls"}, shows="command")),
)

# Only where everything that can be destroyed is the sandbox's own.
_OWN_ROOT: Final[tuple[Callable[[], Script], ...]] = (
    lambda: spoiling("rm -rf /", shell("rm -rf --no-preserve-root / 2>/dev/null", timeout_ms=1000)),
    lambda: spoiling("kills every process it can", shell("kill -9 1; kill -9 -1")),
)


def composed(rollouts: int, *, own_root: bool, strikes: tuple[Strike, ...] = ()) -> tuple[Script, ...]:
    """
    Return a burst: some are struck, some spoil, most behave, evenly mixed.

    *own_root*: a sandbox has a root and processes of its own, so that it may be ruined.
    """
    bad = (*_OWN_ROOT, *_ANYWHERE) if own_root else _ANYWHERE
    others = [*(struck(one.means, one.timing) for one in strikes), *(make() for make in bad)][:rollouts]
    good = [behaving(answer=ITEM["answer"] * (number < _GRADED_GOOD)) for number in range(rollouts - len(others))]
    every = max(1, rollouts // max(1, len(others)))
    mixed: list[Script] = []
    while good or others:
        take_other = others and (not good or len(mixed) % every == every - 1)
        mixed.append(others.pop(0) if take_other else good.pop())
    return tuple(mixed)


def uniform(rollouts: int, *, tool: str, arguments: Mapping[str, Any], calls: int) -> tuple[Script, ...]:
    """Return rollouts that all make the same call, so many times each."""
    return tuple(Script(f"calls {tool}", (Call(arguments, tool=tool),) * calls) for _ in range(rollouts))
