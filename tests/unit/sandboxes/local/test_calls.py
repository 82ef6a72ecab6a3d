"""The filter of system calls, run by a small interpreter of the kernel's own instructions."""

from __future__ import annotations

import errno
import struct

import pytest

from rollcage.sandboxes.local.calls import Hold, program

X86 = 0xC000003E
ALLOWED = None


def verdict(filter_: bytes, number: int, *arguments: int, architecture: int = X86) -> int | None:
    """Return what becomes of a call: the error it gets, or None where it is allowed."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, architecture, 0, *(value & (1 << 64) - 1 for value in padded))
    steps = list(struct.iter_unpack("=HBBI", filter_))
    at, word = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            (word,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return None if value == 0x7FFF0000 else value & 0xFFFF
        else:
            true = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}[code]
            at += yes if true else no


READ, CHMOD, KEYCTL, SOCKET, SOCKETPAIR, CLONE, CLONE3, SETPRIORITY, IOPRIO, PRLIMIT, AFFINITY = (
    *(0, 90, 250, 41, 53, 56, 435, 141, 251, 302, 203),
)
CASES = {
    "reading is allowed": (Hold.LANDLOCK, (READ,), ALLOWED),
    "kernel keys are not": (Hold.NAMESPACES, (KEYCTL,), errno.EPERM),
    "threads are allowed": (Hold.LANDLOCK, (CLONE, 0x3D0F00), ALLOWED),
    "user namespaces are not": (Hold.NAMESPACES, (CLONE, 0x10000011), errno.EPERM),
    "the newer clone is unknown, so that the older is used": (Hold.NAMESPACES, (CLONE3,), errno.ENOSYS),
    "in a network namespace sockets are allowed": (Hold.NAMESPACES, (SOCKET, 2, 1), ALLOWED),
    "without one they are not": (Hold.LANDLOCK_AND_USER, (SOCKET, 2, 1), errno.EPERM),
    "not even those with a path": (Hold.LANDLOCK, (SOCKET, 1, 1), errno.EPERM),
    "pairs are allowed": (Hold.LANDLOCK, (SOCKETPAIR, 1, 1), ALLOWED),
    "with a user id of its own modes can be changed": (Hold.LANDLOCK_AND_USER, (CHMOD,), ALLOWED),
    "without one that does nothing": (Hold.LANDLOCK, (CHMOD,), 0),
    "being nice is allowed": (Hold.LANDLOCK, (SETPRIORITY, 0, 0, 5), ALLOWED),
    "making another one nice is not": (Hold.LANDLOCK, (SETPRIORITY, 0, 7, 5), errno.EPERM),
    "nor making everyone": (Hold.LANDLOCK, (SETPRIORITY, 2, 0, 5), errno.EPERM),
    "with a user id of its own it is": (Hold.LANDLOCK_AND_USER, (SETPRIORITY, 2, 0, 5), ALLOWED),
    "no priority for the disk": (Hold.LANDLOCK, (IOPRIO, 3, 0, 5), errno.EPERM),
    "its own processors": (Hold.LANDLOCK, (AFFINITY, 0), ALLOWED),
    "another one's processors": (Hold.LANDLOCK, (AFFINITY, 7), errno.EPERM),
    "its own limits": (Hold.LANDLOCK, (PRLIMIT, 0, 7, 0x7FFF00000000), ALLOWED),
    "another one's limits": (Hold.LANDLOCK, (PRLIMIT, 7, 7, 0x7FFF00000000), errno.EPERM),
    "another one's limits, with an odd pointer": (Hold.LANDLOCK, (PRLIMIT, 7, 7, 0x1000), errno.EPERM),
    "a look at another one's limits": (Hold.LANDLOCK, (PRLIMIT, 7, 7, 0, 0x1000), ALLOWED),
    "a mark on another one": (Hold.LANDLOCK, (PRLIMIT, 7, 15, 0x1000), ALLOWED),
    "numbers of another kind": (Hold.NAMESPACES, (0x40000000 | READ,), errno.ENOSYS),
}


@pytest.mark.parametrize(("hold", "call", "expected"), CASES.values(), ids=CASES.keys())
def test_what_becomes_of_a_call(hold: Hold, call: tuple[int, ...], expected: int | None) -> None:
    assert verdict(program("x86_64", hold), *call) == expected


def test_calls_of_another_architecture_are_unknown() -> None:
    assert verdict(program("x86_64", Hold.NAMESPACES), READ, architecture=0x40000003) == errno.ENOSYS


def test_arm_has_numbers_of_its_own() -> None:
    filter_ = program("aarch64", Hold.LANDLOCK)

    assert verdict(filter_, 198, architecture=0xC00000B7) == errno.EPERM
    assert verdict(filter_, 63, architecture=0xC00000B7) is ALLOWED


def test_an_architecture_that_we_do_not_know_gets_no_filter() -> None:
    assert program("riscv64", Hold.NAMESPACES) == b""
