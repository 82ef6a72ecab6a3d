"""
The process that workers are forked from: it has everything imported already, and never runs a grader itself.

A start of Python with all imports costs more CPU time than most gradings; a
fork costs next to nothing. Told over standard input, a socket: *begin* with a
directory and the worker's own sockets, *end* with a process id. Whoever was
begun stays in the process table until its end is asked for, so that its id
cannot become another's. What a worker started is handed to this process when
the worker is gone, so that it can be waited for. When the other side is gone,
so is everybody here.
"""

import contextlib
import ctypes
import os
import signal
import socket
from typing import Final

from rollcage.grading import worker

BEGIN: Final = b"B"
END: Final = b"E"
LONGEST: Final = 4096
_SOCKETS: Final = 2

# A worker whose parent is gone could be ended by nobody.
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_LIBC: Final = ctypes.CDLL(None)


def main() -> None:
    """Serve until the other side is gone."""
    asked = socket.socket(fileno=os.dup(0))
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    workers: set[int] = set()
    while True:
        message, sockets, _, _ = socket.recv_fds(asked, LONGEST, _SOCKETS)
        if not message:
            break
        if message[:1] == BEGIN:
            process = os.fork()
            if process == 0:
                asked.close()
                _become(message[1:].decode(), *sockets)
            for one in sockets:
                os.close(one)
            workers.add(process)
            asked.send(str(process).encode())
        else:
            process = int(message[1:])
            workers.discard(process)
            asked.send(str(_ended(process)).encode())
    for process in workers:
        _ended(process)


def _become(home: str, talk: int, printed: int) -> None:
    """Be a worker, in its own session and directory."""
    try:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        for target, given in ((0, talk), (1, talk), (2, printed)):
            os.dup2(given, target)
        os.close(talk)
        os.close(printed)
        os.chdir(home)
        os.environ |= {"HOME": home, "TMPDIR": home}
        worker.main()
    finally:
        # Whatever happens, a worker never returns to serve as the process that it was forked from.
        os._exit(1)


def _ended(process: int) -> int:
    """End a worker and all that it started, and return its exit code, negative for a signal."""
    # Its session has its id, which it keeps until it is waited for. It may not have made it yet.
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(process, signal.SIGKILL)
    _, status = os.waitpid(process, 0)
    # A signal is sent before it is obeyed: the others of its session may need a moment more.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-process, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
