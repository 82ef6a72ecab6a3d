"""
What a sandbox may use, as resource limits.

They are set on the sandbox's first process before it runs anything, and
inherited by all others. They count per process, except for the number of
processes; what counts for the whole sandbox needs a cgroup (``cgroups``).
"""

import os
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

_MIB: Final = 1 << 20

# From this release on processes are counted per user namespace, not per user of the machine.
_COUNTED_PER_NAMESPACE: Final = (5, 14)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use."""

    memory: int
    """Bytes that each process may have, and with a cgroup all of them together, files in memory on top."""
    workspace: int
    """Bytes in the work directory."""
    temporary: int
    """Bytes in /tmp."""
    cpus: float
    """Of the machine's processors, at any time; needs a cgroup."""
    processes: int
    """Threads count as well."""
    open_files: int = 4096
    niceness: int = 5
    """Above 0: the service itself must answer while sandboxes compute."""


def release() -> tuple[int, int]:
    """Return the kernel's version."""
    major, minor = os.uname().release.split(".")[:2]
    digits = "".join(c for c in minor if c.isdigit())
    return int(major), int(digits or 0)


def process_limit(
    limits: Limits, *, alone: bool, user_namespace: bool, kernel: tuple[int, int], others: Callable[[], int]
) -> int:
    """
    Decide how many processes the user of a sandbox may have.

    *alone*: the user id is this sandbox's own. Without that, and on kernels
    that count all processes of a user together, the best there is is a bound
    that leaves room for the *others*: it stops a fork bomb, and several
    sandboxes share what it allows.
    """
    if alone or (user_namespace and kernel >= _COUNTED_PER_NAMESPACE):
        return limits.processes
    return others() + limits.processes


def processes_of(uid: int) -> int:
    """Count the threads of a user."""
    count = 0
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.stat().st_uid == uid:
                    count += sum(1 for _ in os.scandir(f"/proc/{entry.name}/task"))
    return count


def wanted(limits: Limits, processes: int) -> dict[int, int]:
    """Return the resource limits of a sandbox's processes, by the kernel's number for each."""
    return {
        resource.RLIMIT_CORE: 0,
        # Not the address space: Go, Java and Node reserve far more of it than they use.
        resource.RLIMIT_DATA: limits.memory,
        resource.RLIMIT_FSIZE: limits.workspace + limits.temporary,
        resource.RLIMIT_MEMLOCK: _MIB,
        resource.RLIMIT_MSGQUEUE: _MIB,
        resource.RLIMIT_NOFILE: limits.open_files,
        resource.RLIMIT_NPROC: processes,
    }


def apply(pid: int, resources: Mapping[int, int], niceness: int) -> None:
    """Hold a process of our own user, and all that it starts, to limits."""
    for kind, value in resources.items():
        _, most = resource.prlimit(pid, kind)
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.prlimit(pid, kind, (allowed, allowed))
    os.setpriority(os.PRIO_PROCESS, pid, max(niceness, os.getpriority(os.PRIO_PROCESS, pid)))
