"""
What a launcher is told, and how it turns into the program at the end.
"""

import binascii
import marshal
import os
import resource

TYPE_CHECKING = False  # the real one lives in a module that takes longer to load than the rest of this program
if TYPE_CHECKING:
    from typing import TypedDict

    class Spec(TypedDict):
        """One sandbox, as its launcher needs it. Descriptors are inherited."""

        program: list[str]
        workdir: str
        status: int
        """Where the sandbox's process id is told, as one line of JSON."""
        hold: int
        """Where one byte releases the sandbox; the end of file means that nobody wants it any more."""
        keep: list[int]
        """What else the program inherits."""
        uid: int
        gid: int
        outer_uid: int
        outer_gid: int
        hostname: str
        root: list[list[str]]
        """The steps that build the root, see ``rollcage.sandboxes.local.layout``."""
        filter: bytes
        """A seccomp program; empty for none."""
        limits: list[list[int]]
        """Resource limits: the kernel's number for each, and the most."""
        niceness: int
        readable: list[str]
        writable: list[str]
        landlock: bool
else:
    Spec = dict


def encoded(spec: Spec) -> str:
    """Return a spec as one word. Whoever reads it has the same Python, and JSON takes longer to load than to read."""
    return binascii.hexlify(marshal.dumps(dict(spec))).decode()


def decoded(word: str) -> Spec:
    """Return what was encoded."""
    spec: Spec = marshal.loads(binascii.unhexlify(word))  # noqa: S302 - from our own parent, on our own command line
    return spec


def tell(spec: Spec, pid: int) -> None:
    """Tell the service which process is the first one, in bubblewrap's words."""
    os.write(spec["status"], b'{"child-pid": %d}\n' % pid)


def wait_for_release(hold: int) -> None:
    """Return once released; end at once if nobody is there to do it."""
    if not os.read(hold, 1):
        os._exit(1)


def limit(spec: Spec) -> None:
    """
    Hold this process and all that it starts to the limits.

    Done from within: root may do it to others only with a capability that
    containers do not give it.
    """
    for kind, value in spec["limits"]:
        _, most = resource.getrlimit(kind)
        allowed = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(kind, (allowed, allowed))
    os.setpriority(os.PRIO_PROCESS, 0, max(spec["niceness"], os.getpriority(os.PRIO_PROCESS, 0)))


def change_user(spec: Spec) -> None:
    """Take the user id that the sandbox has outside, if that is another one."""
    if os.geteuid() != spec["outer_uid"]:
        os.setgroups([])
        os.setresgid(spec["outer_gid"], spec["outer_gid"], spec["outer_gid"])
        os.setresuid(spec["outer_uid"], spec["outer_uid"], spec["outer_uid"])


def become(spec: Spec) -> None:
    """Turn into the program."""
    os.chdir(spec["workdir"])
    highest = os.sysconf("SC_OPEN_MAX")
    low = 3
    for fd in sorted(spec["keep"]):
        os.closerange(low, fd)
        os.set_inheritable(fd, True)  # noqa: FBT003 - takes no name
        low = fd + 1
    os.closerange(low, highest if highest > 0 else 1 << 16)
    os.execv(spec["program"][0], spec["program"])  # noqa: S606 - that is what it is for
