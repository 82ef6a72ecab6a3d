"""
Which system calls a sandbox may not make, as a seccomp program.

No more than defence in depth where namespaces hold the sandbox in. Under
Landlock alone it closes what Landlock leaves open: sockets of every kind, and,
without a user id of its own, what a process may do to others of the same user.
Decides and encodes; installing it belongs to whoever starts the sandbox.
"""

import errno
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Final

# Not namespaced, or a large attack surface that no tool needs.
FORBIDDEN: Final = (
    *("keyctl", "add_key", "request_key"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("bpf", "perf_event_open", "userfaultfd", "kexec_load", "open_by_handle_at"),
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot"),
    *("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
)

# Landlock says nothing about datagrams, nor about sockets with a path, behind
# one of which a session bus would start anything for its user.
SOCKETS: Final = ("socket",)

# Landlock does not know file modes, and the files of the same user are in reach. These say
# yes and do nothing: refused, git would not even make a repository.
MODES: Final = ("chmod", "fchmodat", "fchmodat2")

# With zeros at these places a process means itself; on others of the same user it is sabotage.
ON_OTHERS: Final = {
    "setpriority": (0, 1),
    "ioprio_set": (0, 1),  # which knows no such zero, and so is refused
    "sched_setaffinity": (0,),
    "sched_setscheduler": (0,),
    "sched_setparam": (0,),
    "sched_setattr": (0,),
}

# The toolserver marks its processes with one of these limits, which limit nothing.
_MARKS: Final = {"RLIMIT_RSS": 5, "RLIMIT_RTTIME": 15}

# The numbers of the kernel's user interface; None where an architecture has no such call.
_NUMBERS: Final[dict[str, tuple[int | None, int | None]]] = {
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chroot": (161, 51),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioprio_set": (251, 30),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "socket": (41, 198),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_ARCHITECTURES: Final = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}

# x86 programs may also number their calls from here; none that we know of does.
_X32: Final = 0x40000000
_CLONE_NEWUSER: Final = 0x10000000

# Classic BPF: load a word, jump if equal, jump if at least, jump if a bit is set, return.
_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16


class Hold(Enum):
    """What else keeps the sandbox in."""

    NAMESPACES = "namespaces"
    LANDLOCK_AND_USER = "landlock and a user id"
    LANDLOCK = "landlock"


@dataclass(frozen=True, slots=True)
class _Step:
    code: int
    value: int
    yes: int = 0
    no: int = 0

    def encoded(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.yes, self.no, self.value)


def program(machine: str, hold: Hold) -> bytes:
    """Return the filter for an architecture (as ``uname -m`` names it); empty where it is not known."""
    if machine not in _ARCHITECTURES:
        return b""
    column, audit = _ARCHITECTURES[machine]
    forbidden = list(FORBIDDEN)
    if hold is not Hold.NAMESPACES:
        forbidden += SOCKETS

    def number(name: str) -> int | None:
        return _NUMBERS[name][column]

    steps = [
        _Step(_LOAD, _ARCHITECTURE_AT),
        _Step(_EQUAL, audit, yes=1),
        _refuse(errno.ENOSYS),
        _Step(_LOAD, _NUMBER_AT),
        _Step(_AT_LEAST, _X32, no=1),
        _refuse(errno.ENOSYS),
    ]
    for name in forbidden:
        if (known := number(name)) is not None:
            steps += _when(known, [_refuse(errno.EPERM)])
    # Its flags are in memory, where a filter cannot look; without it, libraries use the older call.
    steps += _when(number("clone3"), [_refuse(errno.ENOSYS)])
    steps += _when(number("clone"), [_argument(0), _Step(_BITS, _CLONE_NEWUSER, no=1), _refuse(errno.EPERM), _allow()])
    if hold is Hold.LANDLOCK:
        for name in MODES:
            steps += _when(number(name), [_refuse(0)])
        for name, positions in ON_OTHERS.items():
            steps += _when(number(name), _on_oneself(positions))
        steps += _when(number("prlimit64"), _prlimit())
    return b"".join(step.encoded() for step in [*steps, _allow()])


def _on_oneself(positions: tuple[int, ...]) -> list[_Step]:
    checks: list[_Step] = []
    for left in range(len(positions), 0, -1):
        # The refusal stands behind the allowance, two steps after the last check.
        checks += [_argument(positions[-left]), _Step(_EQUAL, 0, no=2 * left - 1)]
    return [*checks, _allow(), _refuse(errno.EPERM)]


def _prlimit() -> list[_Step]:
    new_limit = 2
    return [
        # Our own limits, or a mark, or only a look (a pointer whose halves are both zero).
        *(_argument(0), _Step(_EQUAL, 0, yes=8)),
        *(_argument(1), _Step(_EQUAL, _MARKS["RLIMIT_RSS"], yes=6), _Step(_EQUAL, _MARKS["RLIMIT_RTTIME"], yes=5)),
        *(_argument(new_limit), _Step(_EQUAL, 0, no=2)),
        *(_argument(new_limit, high=True), _Step(_EQUAL, 0, yes=1)),
        *(_refuse(errno.EPERM), _allow()),
    ]


def _when(number: int | None, then: list[_Step]) -> list[_Step]:
    # Whatever is done then ends the program, so that the number need not be loaded again.
    return [_Step(_EQUAL, number, no=len(then)), *then] if number is not None else []


def _argument(position: int, *, high: bool = False) -> _Step:
    # Both architectures are little-endian: the lower half comes first.
    return _Step(_LOAD, _ARGUMENTS_AT + 8 * position + (4 if high else 0))


def _refuse(error: int) -> _Step:
    return _Step(_RETURN, _ERRNO | error)


def _allow() -> _Step:
    return _Step(_RETURN, _ALLOW)
