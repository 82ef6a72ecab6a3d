"""
The system calls that Python does not offer, each with an error that says what was refused.

Numbers are those of the kernel's user interface, which never change. Values
that differ between architectures are looked up once, here.
"""

import ctypes
import os

CLONE_PARENT = 0x8000
CLONE_NEWNS = 0x20000
CLONE_NEWCGROUP = 0x2000000
CLONE_NEWUTS = 0x4000000
CLONE_NEWIPC = 0x8000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
MNT_DETACH = 2
MOUNT_ATTR_RDONLY = 1
MOUNT_ATTR_NOSUID = 2
MOUNT_ATTR_NODEV = 4

PR_SET_PDEATHSIG = 1
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_AT_EMPTY_PATH = 0x1000
_AF_INET = 2
_SOCK_DGRAM_CLOEXEC = 0o2000002
_SIGCHLD = 17
_CAPABILITY_VERSION = 0x20080522
_SECCOMP_SET_MODE_FILTER = 1

# The newer calls have one number everywhere; of the older ones these differ.
_OLD = {
    "x86_64": {"clone": 56, "pivot_root": 155, "capset": 126, "seccomp": 317},
    "aarch64": {"clone": 220, "pivot_root": 41, "capset": 91, "seccomp": 277},
}
_MOUNT_SETATTR = 442
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class Refused(Exception):
    """The kernel did not do it."""


def clone(flags: int) -> int:
    """Fork into new namespaces; return the child's id to the parent and 0 to the child."""
    # On every architecture the flags come first, and the rest may be zero.
    return _syscall("clone", _number("clone"), flags | _SIGCHLD, 0, 0, 0, 0)


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount something somewhere."""
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None
    )
    _check(f"mount {kind or source} on {target}", done)


def unmount(target: str) -> None:
    """Take a mount and all below it out of sight."""
    _check(f"unmount {target}", _libc.umount2(target.encode(), MNT_DETACH))


def restrict_mount(target: str, attributes: int, *, recursive: bool) -> None:
    """Add attributes to a mount, and to those below it."""
    # struct mount_attr: set, clear, propagation, user namespace.
    attr = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    _syscall(
        f"restrict {target}",
        _MOUNT_SETATTR,
        *(_AT_FDCWD, ctypes.c_char_p(target.encode()), flags, ctypes.byref(attr), ctypes.sizeof(attr)),
    )


def pivot_root(new: str, old: str) -> None:
    """Make *new* the root, and move the old one to *old*."""
    _syscall("pivot_root", _number("pivot_root"), ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode()))


def set_hostname(name: str) -> None:
    """Name the machine that this process believes to be on."""
    text = name.encode()
    _check("sethostname", _libc.sethostname(text, len(text)))


def loopback_up() -> None:
    """Switch the loopback interface on."""
    fd = _libc.socket(_AF_INET, _SOCK_DGRAM_CLOEXEC, 0)
    _check("socket", fd)
    # struct ifreq: the name in 16 bytes, then IFF_UP.
    request = ctypes.create_string_buffer(b"lo".ljust(16, b"\0") + (1).to_bytes(2, "little"), 40)
    siocsifflags = 0x8914
    try:
        _check("loopback", _libc.ioctl(fd, siocsifflags, request))
    finally:
        os.close(fd)


def prctl(what: str, option: int, value: int = 0) -> None:
    """Change something about this process."""
    zero = ctypes.c_ulong(0)
    _check(what, _libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero))


def die_with_parent(signal: int) -> None:
    """Receive a signal when the parent ends. Changing the user id undoes it."""
    prctl("die with the parent", PR_SET_PDEATHSIG, signal)


def drop_capabilities() -> None:
    """Give up every privilege, for good."""
    for capability in range(64):
        # Beyond the last one the kernel says EINVAL, and there is nothing left to drop.
        if _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    prctl("clear ambient capabilities", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    _syscall("capset", _number("capset"), ctypes.byref(header), ctypes.byref(none))
    forbid_new_privileges()


def forbid_new_privileges() -> None:
    """Make set-user-id programs run without their privilege."""
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)


def filter_calls(program: bytes) -> None:
    """Install a seccomp filter, given as the kernel's own instructions."""
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    described = Program(len(program) // 8, ctypes.addressof(buffer))
    _syscall("seccomp", _number("seccomp"), _SECCOMP_SET_MODE_FILTER, 0, ctypes.byref(described))


def landlock_abi() -> int:
    """Return the version of Landlock that the kernel has; 0 when there is none."""
    ask_version = 1
    return max(0, int(_libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ask_version)))


def landlock_ruleset(files: int, network: int, scopes: int) -> int:
    """Return a descriptor of a set of rules under which all these need permission."""
    attr = (ctypes.c_uint64 * 3)(files, network, scopes)
    # Older kernels know fewer fields, and refuse a size beyond that unless the rest is zero.
    return _syscall(
        "create a Landlock ruleset",
        _LANDLOCK_CREATE_RULESET,
        ctypes.byref(attr),
        ctypes.c_size_t(ctypes.sizeof(attr)),
        0,
    )


def landlock_allow(ruleset: int, path: str, files: int) -> None:
    """Permit access to a path and everything below it."""
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        # struct landlock_path_beneath_attr is packed: the access in 8 bytes, the descriptor in 4.
        attr = files.to_bytes(8, "little") + parent.to_bytes(4, "little")
        beneath = 1
        _syscall(f"allow {path}", _LANDLOCK_ADD_RULE, ruleset, beneath, ctypes.c_char_p(attr), 0)
    finally:
        os.close(parent)


def landlock_restrict(ruleset: int) -> None:
    """Put this process and its children under the rules, for good."""
    _syscall("restrict by Landlock", _LANDLOCK_RESTRICT_SELF, ruleset, 0)


def _number(name: str) -> int:
    machine = os.uname().machine
    if machine not in _OLD:
        raise Refused(f"{name}: not known for {machine}")
    return _OLD[machine][name]


def _syscall(what: str, number: int, *arguments: object) -> int:
    # The function takes longs; a plain int would be passed in 32 bits.
    wide = (ctypes.c_long(value) if isinstance(value, int) else value for value in arguments)
    done = int(_libc.syscall(ctypes.c_long(number), *wide))
    _check(what, done)
    return done


def _check(what: str, done: int) -> None:
    if done < 0:
        raise Refused(f"{what}: {os.strerror(ctypes.get_errno())}")
