"""
Start a sandbox's process tree, hear of its end, kill it.

Whatever the tier: one first process, told by its launcher; killing that one
kills all, since it is PID 1 of a namespace or has a keeper that sees to it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from rollcage.core.errors import RollcageError
from rollcage.sandboxes.local import limits
from rollcage.sandboxes.local.command import Cage, Descriptors, command

if TYPE_CHECKING:
    import socket
    from asyncio import Future
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

T = TypeVar("T")

# The end of a log says why something ended; a message is no place for more.
_TOLD_BYTES: Final = 2000
# As shells and Kubernetes count: 128 and the signal's number.
_BY_SIGNAL: Final = 128


class StartFailed(RollcageError):
    """A sandbox did not come up; nothing of it is left."""

    code = "sandbox_start_failed"


@dataclass(frozen=True, slots=True)
class Start:
    """Everything that is needed to start a sandbox."""

    cage: Cage
    bubblewrap: str
    env: Mapping[str, str]
    log: Path
    listener: socket.socket | None
    prepare: Callable[[int], None]
    """Called with the first process while it is held."""


class Tree:
    """A process tree that runs."""

    def __init__(self, launcher: _Child, first: int) -> None:
        self.pid = first
        self._launcher = launcher
        self._first = _Child(first)

    async def wait(self) -> int:
        """Return the exit code once everything is over; 128 and the signal's number if it was one."""
        code = await self._launcher.wait()
        # A launcher that left at once has made the first process our own child; one that stayed speaks for it.
        return await self._first.wait() if self._first.ours else code

    def kill(self) -> None:
        """Kill all of it; that it is over is told by wait."""
        self._first.kill()

    def close(self) -> None:
        """Forget it."""
        self._first.close()


class _Child:
    """A process that is watched by a descriptor, which no other process can ever have."""

    def __init__(self, pid: int) -> None:
        self._pidfd = os.pidfd_open(pid)
        self._code: int | None = None
        self.ours = _parent(pid) == os.getpid()

    async def wait(self) -> int:
        while self._code is None:
            await _readable(self._pidfd)
            self._reap()
        return self._code

    def _reap(self) -> None:
        # Several may wait for the same one, and it can be reaped once.
        result = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED | os.WNOHANG) if self._code is None else None
        if result is not None:
            self._code = result.si_status + (0 if result.si_code == os.CLD_EXITED else _BY_SIGNAL)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def close(self) -> None:
        os.close(self._pidfd)


@asynccontextmanager
async def running(start: Start) -> AsyncIterator[Tree]:
    """Run a sandbox; when the block is left, everything of it is dead."""
    async with AsyncExitStack() as ours:
        launcher, status, hold = _launched(start, ours)
        telling = asyncio.ensure_future(_told(launcher, status))
        ours.push_async_callback(_buried, launcher, telling)
        try:
            tree = await _surely(telling)
        except (ValueError, OSError) as error:
            raise StartFailed(tail(start.log) or "the launcher told no process") from error
        _release(start, tree.pid, hold)
        yield tree


def _launched(start: Start, ours: AsyncExitStack) -> tuple[_Child, int, int]:
    with ExitStack() as theirs:
        status, status_inside = os.pipe2(os.O_CLOEXEC)
        ours.callback(os.close, status)
        theirs.callback(os.close, status_inside)
        hold_inside, hold = os.pipe2(os.O_CLOEXEC)
        ours.callback(os.close, hold)
        theirs.callback(os.close, hold_inside)
        filtered = start.cage.filter()
        filter_inside = _memory_file(filtered) if filtered else None
        if filter_inside is not None:
            theirs.callback(os.close, filter_inside)
        # The pipe that releases it ends with us, however we end, and the toolserver looks at it.
        lifeline = os.dup(hold_inside)
        theirs.callback(os.close, lifeline)
        # With a reader of its own bubblewrap can tell its child's number also when we are dead. It would give up
        # without releasing that child, which would wait for ever.
        keep = (lifeline, status) if start.listener is None else (lifeline, status, start.listener.fileno())
        descriptors = Descriptors(status_inside, hold_inside, keep, filter_inside)
        log = theirs.enter_context(start.log.open("ab"))
        try:
            # Not asyncio's: on Python 3.11 that keeps a thread for as long as the process lives.
            process = subprocess.Popen(  # noqa: S603 - a command of our own making
                command(start.cage, start.bubblewrap, descriptors),
                env={**start.env, "ROLLCAGE_LIFELINE": f"fd:{lifeline}"},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=descriptors.all(),
            )
        except OSError as error:
            raise StartFailed(str(error)) from error
    launcher = _Child(process.pid)
    ours.callback(launcher.close)
    # It is reaped here; Popen would complain that nobody did.
    process.returncode = 0
    return launcher, status, hold


def _release(start: Start, pid: int, hold: int) -> None:
    try:
        start.prepare(pid)
        if start.cage.limited_from_outside:
            limits.apply(pid, start.cage.limits, start.cage.niceness)
        os.write(hold, b".")
    except OSError as error:
        # One that is dead already has said why.
        raise StartFailed(tail(start.log) or f"cannot limit it: {error}") from error


async def _told(launcher: _Child, status: int) -> Tree:
    """Read which process the launcher started; ValueError when it tells none."""
    os.set_blocking(status, False)
    text = b""
    while not text.endswith(b"\n"):
        await _readable(status)
        piece = os.read(status, 4096)
        if not piece:
            break
        text += piece
    return Tree(launcher, int(json.loads(text.partition(b"\n")[0])["child-pid"]))


async def _buried(launcher: _Child, telling: Future[Tree]) -> None:
    if telling.exception() is None:
        tree = telling.result()
        tree.kill()
        await _surely(tree.wait())
        tree.close()
    else:
        launcher.kill()
        await _surely(launcher.wait())


async def _surely(work: Awaitable[T]) -> T:
    """Finish something that cannot take long, also when cancelled meanwhile: a zombie would stay for ever."""
    doing = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.wait({doing})
        raise


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    # A copy, since a loop takes one reader for each number only.
    copy = os.dup(fd)
    loop.add_reader(copy, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(copy)
        os.close(copy)


def _memory_file(content: bytes) -> int:
    fd = os.memfd_create("filter")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def tail(log: Path) -> str:
    """Return the end of a log; empty when there is none."""
    try:
        return log.read_bytes()[-_TOLD_BYTES:].decode(errors="replace").strip()
    except OSError:
        return ""


def _parent(pid: int) -> int:
    # The name in parentheses may hold anything, parentheses too.
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
