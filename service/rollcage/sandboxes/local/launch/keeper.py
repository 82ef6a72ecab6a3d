"""
Keep a sandbox that has no process namespace: hold it in by Landlock, and bury everything when it ends.

The keeper stays outside of the cage, so that nothing in there can signal it.
Orphans of the sandbox become its children, wherever they went; once the
toolserver has ended it kills them all, and only then ends itself, with the
toolserver's exit code.
"""

# pathlib takes longer to load than the rest of this program:
# ruff: noqa: PTH112, PTH123

import os
import signal
import time

from rollcage.sandboxes.local.launch import kernel
from rollcage.sandboxes.local.launch.spec import Spec, become, change_user, limit, tell, wait_for_release

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIR = 1 << 3
_TRUNCATE = 1 << 14
_IOCTL_DEV = 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

# How many kinds of access each version knows, beginning with the first.
_ACCESS_KINDS = {1: 13, 2: 14, 3: 15, 4: 15}
_NEWEST_ACCESS_KINDS = 16
_NETWORK_SINCE = 4
_SCOPES_SINCE = 6
_TCP = 0b11
_SOCKETS_AND_SIGNALS = 0b11

# Beyond this only a process stuck in the kernel is left, which nobody can kill.
_SWEEP_SECONDS = 10.0
_SIGNALS = (signal.SIGCHLD, signal.SIGTERM)


def launch(spec: Spec) -> None:
    """Run the sandbox to its end."""
    kernel.prctl("become the reaper", kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.die_with_parent(signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    child = os.fork()
    if child == 0:
        _enter(spec)
        return
    tell(spec, child)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    code = _ended(child)
    _sweep(spec["outer_uid"])
    os._exit(code)


def _enter(spec: Spec) -> None:
    os.close(spec["status"])
    os.setsid()
    change_user(spec)
    kernel.die_with_parent(signal.SIGKILL)
    # If the keeper died before that, the service will not release us either: its start has failed.
    kernel.forbid_new_privileges()
    if spec["landlock"]:
        _restrict(spec["readable"], spec["writable"])
        # Root without any other user id to take is at least no more than a user.
        kernel.drop_capabilities()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    wait_for_release(spec["hold"])
    limit(spec)
    if spec["filter"]:
        kernel.filter_calls(spec["filter"])
    become(spec)


def _restrict(readable: list[str], writable: list[str]) -> None:
    abi = kernel.landlock_abi()
    everything = (1 << _ACCESS_KINDS.get(abi, _NEWEST_ACCESS_KINDS)) - 1
    rules = kernel.landlock_ruleset(
        everything, _TCP if abi >= _NETWORK_SINCE else 0, _SOCKETS_AND_SIGNALS if abi >= _SCOPES_SINCE else 0
    )
    for paths, access in ((readable, _EXECUTE | _READ_FILE | _READ_DIR), (writable, everything)):
        for path in paths:
            allowed = access if os.path.isdir(path) else access & _OF_FILES
            kernel.landlock_allow(rules, path, allowed & everything)
    kernel.landlock_restrict(rules)
    os.close(rules)


def _ended(child: int) -> int:
    """Wait for the toolserver, bury who dies before it, and return its exit code."""
    while True:
        if signal.sigwait(_SIGNALS) == signal.SIGTERM:
            os.kill(child, signal.SIGKILL)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def _sweep(uid: int) -> None:
    """Kill until nobody is left."""
    deadline = time.monotonic() + _SWEEP_SECONDS
    while time.monotonic() < deadline:
        if os.geteuid() != uid:
            _kill_user(uid)
        else:
            for pid in _descendants():
                _kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _kill_user(uid: int) -> None:
    # To everyone it may signal, in one call that no fork can outrun.
    child = os.fork()
    if child == 0:
        os.setresuid(uid, uid, uid)
        try:
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def _descendants() -> list[int]:
    found = []
    unseen = [os.getpid()]
    while unseen:
        pid = unseen.pop()
        try:
            with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue
        found += children
        unseen += children
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
