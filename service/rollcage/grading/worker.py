"""
The process in which one grading happens: reads a job, runs the grader, says what came of it, and ends.

The only place where a team's code is imported and hostile data is looked at.
It may hang, crash or print what it likes: whoever started it has the last word.
"""

import asyncio
import contextlib
import inspect
import os
import re
import resource
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from json import loads
from typing import Any, BinaryIO, Final

from rollcage.core.graders import read_grader
from rollcage.grading.artifacts import Artifacts
from rollcage.grading.builtins import evaluate
from rollcage.grading.frames import Frame, read_blocking
from rollcage.grading.protocol import Answer, Context, Ran, Refused, Score, Step

MOST_PARTS: Final = 64
MOST_NOTES: Final = 32
LONGEST_NOTE: Final = 500
_LONGEST_ACCOUNT: Final = 4000
_FENCE: Final = re.compile(r"```(?:json)?\s*\n(.*)```", re.DOTALL)


class _SandboxFailed(Refused):
    """The infrastructure failed; the gateway knows and refuses, whatever is made of this."""


@dataclass(frozen=True, slots=True)
class _Channel:
    """The other end is the gateway."""

    source: BinaryIO
    sink: BinaryIO
    lock: threading.Lock

    def say(self, frame: Frame) -> None:
        self.sink.write(frame.encoded())
        self.sink.flush()

    def ask(self, frame: Frame) -> Frame:
        with self.lock:
            self.say(frame)
            return read_blocking(self.source)


@dataclass(frozen=True, slots=True)
class _Sandboxes:
    """Fresh sandboxes, asked for through the gateway."""

    channel: _Channel

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
        frame = Frame.of(
            {
                "kind": "run",
                "command": command,
                "environment": environment,
                "timeout_seconds": timeout_seconds,
                "collect": list(collect),
                "collect_trees": list(collect_trees),
            },
            archives=artifacts.archives() if artifacts else {},
            files=dict(files or {}),
        )
        answer = await asyncio.to_thread(self.channel.ask, frame)
        if "failed" in answer.fields:
            raise _SandboxFailed(str(answer.fields["failed"]))
        told = answer.fields
        trees = Artifacts.read(answer.parts("trees"))
        return Ran(
            output=told["output"],
            exit_code=told["exit_code"],
            timed_out=told["timed_out"],
            ended=told["ended"],
            files={**answer.parts("files"), **{name: trees.get(name) or b"" for name in trees.names}},
        )


def main() -> None:
    """Do one grading, over standard input and output."""
    # What a grader prints must not be taken for its answer.
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    channel = _Channel(source, sink, threading.Lock())
    job = read_blocking(source)
    resource.setrlimit(resource.RLIMIT_DATA, (job.fields["memory_bytes"],) * 2)
    # Calls of running rollouts come first.
    os.nice(5)
    sys.path[:0] = job.fields["paths"]
    try:
        fields = told(asyncio.run(_graded(job, channel)))
    except Refused as refusal:
        fields = {"kind": "refused", "cause": str(refusal)[:LONGEST_NOTE]}
    except BaseException as error:  # noqa: BLE001 - whatever a grader raises, SystemExit too, is its crash
        account = "".join(traceback.format_exception(error))[-_LONGEST_ACCOUNT:]
        fields = {"kind": "crashed", "cause": type(error).__name__, "account": account}
    with contextlib.suppress(BrokenPipeError):
        channel.say(Frame(fields))
    # Threads that a grader left running must not keep the process.
    sys.stderr.flush()
    os._exit(0)


def told(score: Any) -> dict[str, Any]:
    """Return what is said of a grader's answer; whether it is a score is decided by whoever asked."""
    if isinstance(score, (int, float)):
        score = Score(float(score))
    if not isinstance(score, Score):
        return {"kind": "nonsense", "cause": f"{type(score).__name__}, no score"}
    parts = list(score.parts.items())[:MOST_PARTS]
    return {
        "kind": "score",
        "value": float(score.value),
        "parts": {str(name)[:64]: float(value) for name, value in parts},
        "notes": [str(note)[:LONGEST_NOTE] for note in score.notes[:MOST_NOTES]],
    }


async def _graded(job: Frame, channel: _Channel) -> Any:
    context = _context(job, channel)
    answer = evaluate(read_grader(job.fields["grader"]), context)
    return await answer if inspect.isawaitable(answer) else answer


def _context(job: Frame, channel: _Channel) -> Context:
    fields = job.fields
    return Context(
        answer=_answer(**fields["answer"]),
        item=fields["item"],
        trajectory=tuple(_step(one) for one in fields["trajectory"]),
        verdict=fields["verdict"],
        artifacts=Artifacts.read(job.parts("archives"), fields["absent"]),
        sandbox=_Sandboxes(channel),
    )


def _answer(text: str, json: Any) -> Answer:
    """Take the text for JSON where it is some and the trainer did not say."""
    fenced = _FENCE.fullmatch(text.strip())
    bare = fenced[1] if fenced else text
    if json is None and bare.lstrip().startswith(("{", "[")):
        with contextlib.suppress(ValueError, RecursionError):
            json = loads(bare)
    return Answer(text, json)


def _step(given: Mapping[str, Any]) -> Step:
    finished = given["finished_at"]
    return Step(
        **{
            **given,
            "begun_at": datetime.fromisoformat(given["begun_at"]),
            "finished_at": datetime.fromisoformat(finished) if finished else None,
        }
    )


if __name__ == "__main__":
    main()
