"""
Bound a whole sandbox by a cgroup, where this machine lets us make one.

That takes root, or a part of the tree that was delegated to the user (a
terminal of a desktop session; ``systemd-run --user --scope``). Ours are made
below the cgroup that we are in, or beside it where the kernel wants that:
nothing here escapes a limit that somebody set for us.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollcage.sandboxes.local.limits import Limits

MOUNT: Final = Path("/sys/fs/cgroup")

# Two seconds in all: beyond that it is not a matter of time.
_LOOK_AGAIN: Final = 0.01
_LOOKS: Final = 200
_PERIOD_US: Final = 100_000

# The first version has a tree for each controller, and of them only memory is worth the trouble.
_FIRST: Final = ("memory", "pids", "cpu")


class NoCgroup(Exception):
    """This machine does not let us make cgroups; the message says why."""


@dataclass(frozen=True, slots=True)
class Cgroup:
    """One sandbox's cgroup: a directory, or one for each controller."""

    directories: Mapping[str, Path]
    unified: bool

    @property
    def shown(self) -> dict[str, Path]:
        """Where a sandbox finds its own counters, and where they are outside."""
        if self.unified:
            return {str(MOUNT): self.directories[""]}
        return {str(MOUNT / name): path for name, path in self.directories.items() if name != "pids"}

    def add(self, pid: int) -> None:
        """Put a process in; its children follow."""
        for directory in self.directories.values():
            (directory / "cgroup.procs").write_text(str(pid))

    def oom_kills(self) -> int:
        """Return how many processes the kernel killed for want of memory."""
        file = "memory.events" if self.unified else "memory.oom_control"
        path = self.directories["" if self.unified else "memory"] / file
        with suppress(OSError):
            for line in path.read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    def remove(self) -> bool:
        """Remove it; False while somebody is still in it."""
        for directory in self.directories.values():
            try:
                directory.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The part of the tree that one service has for its sandboxes."""

    slices: Mapping[str, Path]
    unified: bool

    def make(self, name: str, limits: Limits) -> Cgroup:
        """Make one for a sandbox."""
        made = Cgroup({controller: path / name for controller, path in self.slices.items()}, self.unified)
        try:
            for controller, directory in made.directories.items():
                directory.mkdir()
                for file, value in _settings(controller, limits).items():
                    # Which of them there are depends on the kernel; that memory is one was tried at the start.
                    with suppress(FileNotFoundError, PermissionError):
                        _write(directory / file, value)
        except OSError:
            made.remove()
            raise
        return made

    def remove(self) -> None:
        """Remove it with everything in it; what is still in use stays."""
        for directory in self.slices.values():
            remove_slice(directory)


def find(name: str, *, mount: Path = MOUNT, own: str | None = None) -> Cgroups:
    """Make the service's part of the tree, or raise NoCgroup."""
    own = Path("/proc/self/cgroup").read_text() if own is None else own
    paths: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path.lstrip("/"))
    if (mount / "cgroup.controllers").exists():
        return _unified(mount / paths.get("", ""), name, top=mount)
    if "memory" in paths and (mount / "memory").exists():
        return _separate(mount, paths, name)
    raise NoCgroup("no cgroup file system with a memory controller")


def remove_slice(directory: Path) -> None:
    """Remove a service's part of the tree; processes in it that were just killed need a moment to leave it."""
    for _ in range(_LOOKS):
        if _removed(directory):
            return
        time.sleep(_LOOK_AGAIN)


def _removed(directory: Path) -> bool:
    with suppress(OSError):
        for entry in directory.iterdir():
            if entry.is_dir():
                with suppress(OSError):
                    entry.rmdir()
        directory.rmdir()
    return not directory.exists()


def _unified(own: Path, name: str, *, top: Path) -> Cgroups:
    # A cgroup with processes in it may have none below it that is limited: then ours goes beside.
    refusal = ""
    for parent in (own, own.parent) if own != top else (own,):
        made = parent / name
        if not os.access(parent / "cgroup.procs", os.W_OK):
            # Moving a process takes this right on the nearest cgroup above both places.
            refusal = f"{parent}: not delegated to this user"
            continue
        try:
            made.mkdir()
            try:
                with suppress(OSError):
                    _write(parent / "cgroup.subtree_control", "+memory +pids")
                _write(made / "cgroup.subtree_control", "+memory +pids")
            except OSError:
                made.rmdir()
                raise
        except OSError as error:
            refusal = f"{parent}: {error.strerror}"
            continue
        with suppress(OSError):
            _write(made / "cgroup.subtree_control", "+cpu")
        return Cgroups({"": made}, unified=True)
    raise NoCgroup(refusal)


def _separate(mount: Path, paths: Mapping[str, str], name: str) -> Cgroups:
    slices = {}
    for controller in _FIRST:
        if controller not in paths:
            continue
        made = mount / controller / paths[controller] / name
        try:
            made.mkdir()
        except OSError as error:
            if controller == "memory":
                raise NoCgroup(f"{made.parent}: {error.strerror}") from error
            continue
        slices[controller] = made
    return Cgroups(slices, unified=False)


def _settings(controller: str, limits: Limits) -> dict[str, str]:
    # Files in memory count as memory, and a full work directory must be an error in there, not a killed process.
    memory = str(limits.memory + limits.workspace + limits.temporary)
    processes = str(limits.processes)
    quota = int(limits.cpus * _PERIOD_US)
    return {
        "": {
            "memory.max": memory,
            "memory.swap.max": "0",
            "pids.max": processes,
            "cpu.max": f"{quota} {_PERIOD_US}",
        },
        "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
        "pids": {"pids.max": processes},
        "cpu": {"cpu.cfs_period_us": str(_PERIOD_US), "cpu.cfs_quota_us": str(quota)},
    }[controller]


def _write(path: Path, text: str) -> None:
    # Opened without O_CREAT: a file that is not there is a controller that is not there.
    with path.open("r+") as file:
        file.write(text)
