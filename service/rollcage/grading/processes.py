"""
Lend processes for gradings: each fresh, in a directory of its own, gone with all it started when it is given back.

How one is made is said in ``forking``; what is said to it in ``workers``.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from rollcage.grading.errors import GraderCrashed
from rollcage.grading.forking import BEGIN, END, LONGEST

# What graders are told of our variables: where programs and certificates are, and what is named for them.
_PASSED_ON: Final = frozenset({"PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "PYTHONPATH"})
_FOR_GRADERS: Final = "GRADER_"


@dataclass(slots=True)
class Process:
    """A worker: what it says, how to answer, what it prints; and once it is gone, how it ended."""

    said: asyncio.StreamReader
    answers: asyncio.StreamWriter
    printed: asyncio.StreamReader
    ended: int | None = None


class Processes:
    """Makes processes, from one that is made when the first is wanted, and again if it is gone."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = {
            name: value for name, value in variables.items() if name in _PASSED_ON or name.startswith(_FOR_GRADERS)
        }
        self._parent: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[Process]:
        """Lend a process."""
        with tempfile.TemporaryDirectory(prefix="rollcage-grading-", ignore_cleanup_errors=True) as home:
            talk, its_talk = socket.socketpair()
            printed, its_printed = socket.socketpair()
            try:
                with its_talk, its_printed:
                    line, number = await self._begun(home, (its_talk.fileno(), its_printed.fileno()))
            except BaseException:
                talk.close()
                printed.close()
                raise
            said, answers = await asyncio.open_unix_connection(sock=talk)
            prints, unused = await asyncio.open_unix_connection(sock=printed)
            process = Process(said, answers, prints)
            try:
                yield process
            finally:
                answers.close()
                unused.close()
                # Not given up half way: what was begun must end, whoever is cancelled.
                process.ended = await asyncio.shield(self._told(line, END + str(number).encode()))

    def close(self) -> None:
        """End all processes."""
        if self._line:
            self._line.close()
        if self._parent:
            self._parent.wait()
        self._line = self._parent = None

    async def _begun(self, home: str, sockets: tuple[int, int]) -> tuple[socket.socket, int]:
        async with self._turn:
            if self._parent is None or self._parent.poll() is not None:
                self.close()
                await asyncio.to_thread(self._start)
            assert self._line  # noqa: S101 - just made
            line = self._line
            socket.send_fds(line, [BEGIN + home.encode()], list(sockets))
            number = await asyncio.get_running_loop().sock_recv(line, LONGEST)
        if not number:
            raise GraderCrashed(cause="no process could be made")
        return line, int(number)

    async def _told(self, line: socket.socket, message: bytes) -> int:
        loop = asyncio.get_running_loop()
        async with self._turn:
            try:
                await loop.sock_sendall(line, message)
                answer = await loop.sock_recv(line, LONGEST)
            except OSError:
                answer = b""
        # If the parent is gone, so are its workers, and nobody knows how they ended.
        return int(answer or b"-9")

    def _start(self) -> None:
        line, its_line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.settimeout(0)
        with its_line:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "rollcage.grading.forking"],
                stdin=its_line.fileno(),
                stdout=subprocess.DEVNULL,
                env={**self._variables, "PYTHONDONTWRITEBYTECODE": "1", "HOME": os.sep},
                cwd=os.sep,
                start_new_session=True,
            )
        self._line = line
