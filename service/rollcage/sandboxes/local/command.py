"""
Decide how a sandbox is started in each tier: which program, which arguments, as whom.

All tiers are started the same way, in two steps. The program builds the cage,
tells the process id of the first process in it on *status*, and holds it until
*hold* has a byte; limits are set in between, from outside.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import rollcage
from rollcage.sandboxes.local import calls, layout
from rollcage.sandboxes.local.launch.spec import Spec, encoded
from rollcage.sandboxes.local.layout import Bind, Devices, Link, Memory, Processes, ReadOnly, Step
from rollcage.sandboxes.local.tiers import Tier

HOSTNAME: Final = "sandbox"

# Isolated and without site: it starts in a few milliseconds, and nothing of the caller's gets in.
_SCRIPT: Final = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from rollcage.sandboxes.local.launch.main import main
sys.exit(main())
"""
_LAUNCHER: Final = (sys.executable, "-I", "-S", "-c", _SCRIPT, str(Path(rollcage.__file__).parent.parent))


@dataclass(frozen=True, slots=True)
class Descriptors:
    """What the started program inherits, by number."""

    status: int
    hold: int
    keep: tuple[int, ...] = ()
    """What the sandbox itself inherits."""
    filter: int | None = None
    """A seccomp program, for bubblewrap."""

    def all(self) -> tuple[int, ...]:
        """Return every one of them."""
        return (self.status, self.hold, *self.keep, *(() if self.filter is None else (self.filter,)))


@dataclass(frozen=True, slots=True)
class Cage:
    """One sandbox's surroundings."""

    tier: Tier
    program: tuple[str, ...]
    """As the sandbox sees it."""
    workspace: str
    user: int | None
    """A user id of its own, if it can have one."""
    limits: Mapping[int, int] = field(default_factory=dict)
    """Resource limits, by the kernel's number for each."""
    niceness: int = 0
    root: tuple[Step, ...] = ()
    """What it finds in its root, where it has one of its own."""
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    """What it may use of the host's root, where it has none of its own."""

    @property
    def limited_from_outside(self) -> bool:
        """
        Whether its limits are set on the held process, by us.

        Bubblewrap sets none. Set before it, the number of processes would
        count all that the user has; with a user id of its own it may.
        """
        return self.tier is Tier.BUBBLEWRAP and self.user is None

    @property
    def hold(self) -> calls.Hold:
        """What the filter of system calls can rely on."""
        if self.tier in {Tier.BUBBLEWRAP, Tier.NAMESPACES}:
            return calls.Hold.NAMESPACES
        return calls.Hold.LANDLOCK if self.user is None else calls.Hold.LANDLOCK_AND_USER

    def filter(self) -> bytes:
        """Return the filter of system calls; empty without isolation."""
        return b"" if self.tier is Tier.NONE else calls.program(os.uname().machine, self.hold)


def command(cage: Cage, bubblewrap: str, descriptors: Descriptors) -> list[str]:
    """Return the command that starts a sandbox."""
    if cage.tier is not Tier.BUBBLEWRAP:
        kind = "cage" if cage.tier is Tier.NAMESPACES else "keeper"
        return [*_LAUNCHER, kind, encoded(_spec(cage, cage.program, descriptors))]
    wrapped = (
        *(bubblewrap, *_bubblewrap_options(descriptors), *_bubblewrap_root(cage.root)),
        *("--chdir", cage.workspace, "--", *cage.program),
    )
    if cage.limited_from_outside:
        return list(wrapped)
    return [*_LAUNCHER, "dropper", encoded(_spec(cage, wrapped, descriptors))]


def _spec(cage: Cage, program: tuple[str, ...], descriptors: Descriptors) -> Spec:
    return {
        "program": list(program),
        "workdir": cage.workspace,
        "status": descriptors.status,
        "hold": descriptors.hold,
        "keep": [*descriptors.keep, *(() if descriptors.filter is None else (descriptors.filter,))],
        "uid": layout.UID,
        "gid": layout.GID,
        "outer_uid": os.geteuid() if cage.user is None else cage.user,
        "outer_gid": os.getegid() if cage.user is None else cage.user,
        "hostname": HOSTNAME,
        "root": [_launcher_step(step) for step in cage.root],
        "filter": cage.filter(),
        "limits": [list(pair) for pair in cage.limits.items()],
        "niceness": cage.niceness,
        "readable": list(cage.readable),
        "writable": list(cage.writable),
        "landlock": cage.tier is Tier.LANDLOCK,
    }


def _bubblewrap_options(descriptors: Descriptors) -> Sequence[str]:
    # Not --die-with-parent: if it dies between its clone and the release of its child, the child waits for ever.
    return (
        *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        *("--uid", str(layout.UID), "--gid", str(layout.GID), "--hostname", HOSTNAME),
        *("--as-pid-1", "--new-session", "--cap-drop", "ALL"),
        *("--json-status-fd", str(descriptors.status), "--block-fd", str(descriptors.hold)),
        *(() if descriptors.filter is None else ("--seccomp", str(descriptors.filter))),
    )


def _bubblewrap_root(steps: Sequence[Step]) -> list[str]:
    words: list[str] = []
    for step in steps:
        match step:
            case Bind(target, source):
                words += ["--ro-bind", source, target]
            case Link(target, to):
                words += ["--symlink", to, target]
            case Memory(target, size, mode):
                words += ["--perms", mode, "--size", str(size), "--tmpfs", target]
            case Devices(target):
                words += ["--dev", target]
            case Processes(target):
                words += ["--proc", target]
            case ReadOnly(target):
                words += ["--remount-ro", target]
    return [*words, "--remount-ro", "/"]


def _launcher_step(step: Step) -> list[str]:
    match step:
        case Bind(target, source):
            return ["bind", target, source]
        case Link(target, to):
            return ["link", target, to]
        case Memory(target, size, mode):
            return ["memory", target, str(size), mode]
        case Devices(target):
            return ["devices", target]
        case Processes(target):
            return ["proc", target]
        case ReadOnly(target):
            return ["read-only", target]
