"""
Run a grader in a process of its own, and have the last word: a time limit, a bound on everything it says.

A worker does one grading and is never used again. It gets sandboxes only
through us.
"""

import asyncio
import contextlib
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rollcage.core.environment_grading import Range
from rollcage.core.errors import RollcageError
from rollcage.grading.errors import (
    GraderCrashed,
    GraderRefused,
    GradersBusy,
    GraderTimedOut,
    GradingSandboxFailed,
    ScoreInvalid,
)
from rollcage.grading.frames import HEAD, BadFrame, Frame, decoded, lengths
from rollcage.grading.processes import Process, Processes
from rollcage.grading.protocol import Score

_LONGEST_ACCOUNT: Final = 4000
_LAST_WORDS: Final = 1.0

# Answers a request for a fresh sandbox.
Sandboxes = Callable[[Frame], Awaitable[Frame]]


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How graders are run."""

    # Directories in which teams' modules are found, besides what is installed.
    paths: tuple[Path, ...] = ()
    # A grader mostly waits, for a sandbox or a judge; while it does it costs some MB.
    at_once: int = 16
    waiting: int = 2000
    memory_bytes: int = 2 << 30
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


class Workers:
    """Workers, each for one grading."""

    def __init__(self, settings: WorkerSettings, processes: Processes) -> None:
        self._settings = settings
        self._processes = processes
        self._places = asyncio.Semaphore(self._settings.at_once)
        self._waiting = 0

    async def grade(self, job: Frame, *, allowed: Range, seconds: float, sandboxes: Sandboxes) -> Score:
        """Return the score, or raise why there is none."""
        async with self._place():
            async with self._processes.lent() as process:
                try:
                    async with asyncio.timeout(seconds):
                        said, account = await _conversation(process, self._told(job), sandboxes)
                except TimeoutError:
                    raise GraderTimedOut(seconds=seconds) from None
            if said is None:
                raise GraderCrashed(cause=f"ended without a word ({_status(process.ended)})", account=account)
        return score_of(said, allowed)

    def _told(self, job: Frame) -> Frame:
        settings = self._settings
        paths = [str(path.resolve()) for path in settings.paths]
        return Frame({**job.fields, "paths": paths, "memory_bytes": settings.memory_bytes}, job.content)

    @asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        if self._waiting >= self._settings.waiting:
            raise GradersBusy
        self._waiting += 1
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()


def score_of(said: Mapping[str, Any], allowed: Range) -> Score:
    """Return the score that a worker told of, or raise why it is none."""
    cause = str(said.get("cause", ""))
    match said.get("kind"):
        case "refused":
            raise GraderRefused(cause=cause)
        case "crashed":
            raise GraderCrashed(cause=cause, account=str(said.get("account", "")))
        case "nonsense":
            raise ScoreInvalid(cause=cause)
        case "score":
            pass
        case _:
            raise GraderCrashed(cause="said nothing")
    value, parts, notes = said.get("value"), said.get("parts", {}), said.get("notes", ())
    if not isinstance(value, float) or not all(isinstance(one, float) for one in parts.values()):
        raise ScoreInvalid(cause="no number")
    if not math.isfinite(value) or not all(map(math.isfinite, parts.values())):
        raise ScoreInvalid(cause="a number that is not finite")
    if value not in allowed:
        raise ScoreInvalid(cause=f"{value:g}, outside {allowed.lowest:g} to {allowed.highest:g}")
    return Score(value, {_whole(name): one for name, one in parts.items()}, tuple(map(_whole, notes)))


def _whole(text: Any) -> str:
    """Return a text that every serializer takes: names of files may hold half a surrogate pair."""
    return str(text).encode(errors="replace").decode()


async def _conversation(process: Process, job: Frame, sandboxes: Sandboxes) -> tuple[Mapping[str, Any] | None, str]:
    """Give the job, serve what is asked for, and return the last thing said, or None; and what was printed."""
    failed: RollcageError | None = None
    async with asyncio.TaskGroup() as tasks:
        tail = _Tail()
        reading = tasks.create_task(tail.read(process.printed))
        await _say(process, job)
        while (frame := await _heard(process)) and frame.fields.get("kind") == "run":
            try:
                answer = await sandboxes(frame)
            except RollcageError as error:
                # Kept: a grader that swallows this and gives a number must not get away with it.
                failed = error
                answer = Frame({"failed": error.code})
            await _say(process, answer)
        if frame is None:
            # It is gone, or as good as; its last words tell why.
            await asyncio.wait({reading}, timeout=_LAST_WORDS)
        reading.cancel()
    if failed:
        raise GradingSandboxFailed(cause=failed.code) from failed
    return (frame.fields if frame else None), tail.text


async def _say(process: Process, frame: Frame) -> None:
    # Whoever is gone says so by saying nothing; that is heard next.
    with contextlib.suppress(ConnectionError):
        process.answers.write(frame.encoded())
        await process.answers.drain()


async def _heard(process: Process) -> Frame | None:
    try:
        sizes = lengths(await process.said.readexactly(HEAD.size))
        return decoded(await process.said.readexactly(sizes.text), await process.said.readexactly(sizes.content))
    except (asyncio.IncompleteReadError, ConnectionError, BadFrame):
        return None


class _Tail:
    """Reads all that is printed, however much, and keeps the end of it."""

    def __init__(self) -> None:
        self._kept = b""

    @property
    def text(self) -> str:
        return self._kept.decode(errors="replace")

    async def read(self, printed: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            while piece := await printed.read(65_536):
                self._kept = (self._kept + piece)[-_LONGEST_ACCOUNT:]


def _status(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


@asynccontextmanager
async def open_workers(settings: WorkerSettings | None = None) -> AsyncIterator[Workers]:
    """Lend workers; afterwards all their processes are gone."""
    told = settings or WorkerSettings()
    processes = Processes(told.variables)
    try:
        yield Workers(told, processes)
    finally:
        await asyncio.to_thread(processes.close)
