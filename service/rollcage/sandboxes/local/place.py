"""
The one directory that a service has on disk for its local sandboxes.

Sockets, logs, the toolserver's copy, work directories where they are not in
memory. It is locked while its service lives; one that nobody has locked was
left by a crash and is removed by the next to start.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollcage.core.errors import RollcageError
from rollcage.sandboxes.local import cgroups
from rollcage.sandboxes.local.layout import OWN_SETTINGS

_PREFIX: Final = "rollcage-local-"
_LOCK: Final = "lock"
_CGROUPS: Final = "cgroups"
# What Linux takes as the path of a socket, less the name of ours.
_LONGEST: Final = 107 - len("/s/0123456789abcdef")


class BadPlace(RollcageError):
    """Local sandboxes cannot keep their files there; nothing was started."""

    code = "bad_place"


@dataclass(frozen=True, slots=True)
class Place:
    """A service's own directory."""

    directory: Path

    @property
    def toolserver(self) -> Path:
        """A copy, where every user can run it and nobody can change it."""
        return self.directory / "toolserver"

    @property
    def settings(self) -> Path:
        """The sandboxes' own /etc files."""
        return self.directory / "etc"

    def socket(self, key: str) -> Path:
        """Where a sandbox's toolserver is reached; no sandbox can look there."""
        return self.directory / "s" / key

    def log(self, key: str) -> Path:
        """Where a sandbox's toolserver logs."""
        return self.directory / "s" / f"{key}.log"

    def work(self, key: str) -> Path:
        """Where a sandbox without a root of its own works."""
        return self.directory / "w" / key

    def prepare(self, key: str, user: int | None) -> None:
        """Make the directories of one sandbox."""
        work = self.work(key)
        for path in (work, work / "workspace", work / "tmp"):
            path.mkdir(mode=0o700)
            if user is not None:
                os.chown(path, user, user)

    def clear(self, key: str) -> None:
        """Remove what one sandbox has here."""
        for path in (self.socket(key), self.log(key)):
            path.unlink(missing_ok=True)
        remove(self.work(key))

    def remember(self, found: cgroups.Cgroups) -> None:
        """Note which cgroups go with this directory."""
        (self.directory / _CGROUPS).write_text("\n".join(map(str, found.slices.values())))


@contextmanager
def place(toolserver: Path, *, parent: Path | None = None) -> Iterator[Place]:
    """Make a directory and remove it afterwards; those that crashed services left are removed first."""
    base = (parent or Path(tempfile.gettempdir())).resolve()
    _check(base)
    for left in base.glob(_PREFIX + "*"):
        _remove_if_left(left)
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if len(str(directory)) > _LONGEST:
            raise BadPlace(f"{directory} is too long for sockets in it; choose a shorter directory")
        yield _furnished(directory, toolserver)
    finally:
        remove(directory)
        os.close(lock)


def remove(directory: Path) -> None:
    """Remove a directory, whatever the model did to the modes of its own."""
    for parent, names, _ in os.walk(directory):
        for name in names:
            child = Path(parent) / name
            if not child.is_symlink():
                with suppress(OSError):
                    child.chmod(0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _check(base: Path) -> None:
    if not base.is_dir():
        raise BadPlace(f"{base} is not a directory")
    if os.geteuid() != 0:
        return
    closed = [path for path in (base, *base.parents) if not path.stat().st_mode & stat.S_IXOTH]
    if closed:
        raise BadPlace(
            f"sandboxes with user ids of their own cannot pass through {closed[0]}; choose another directory"
        )


def _furnished(directory: Path, toolserver: Path) -> Place:
    made = Place(directory)
    # Sandboxes with a user id of their own pass through here to their own files; nobody can list it.
    directory.chmod(0o711)
    (directory / "s").mkdir(0o700)
    (directory / "w").mkdir()
    (directory / "w").chmod(0o711)
    made.settings.mkdir()
    made.settings.chmod(0o755)
    for name, text in OWN_SETTINGS.items():
        (made.settings / name).write_text(text)
        (made.settings / name).chmod(0o444)
    try:
        shutil.copyfile(toolserver, made.toolserver)
    except OSError as error:
        raise BadPlace(f"there is no toolserver at {toolserver}: {error.strerror}") from error
    made.toolserver.chmod(0o555)
    return made


def _remove_if_left(directory: Path) -> None:
    try:
        if directory.is_symlink() or directory.stat().st_uid != os.geteuid():
            return
        lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with suppress(OSError):
            for path in (directory / _CGROUPS).read_text().splitlines():
                cgroups.remove_slice(Path(path))
        remove(directory)
    except BlockingIOError:
        pass  # Its service lives.
    finally:
        os.close(lock)
