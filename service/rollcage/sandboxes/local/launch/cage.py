"""
Build a private root in new namespaces, and become PID 1 in it.

The launcher clones a child that is *not* its own but its parent's: the service
hears of the sandbox's end without anyone in between, and the launcher's memory
is not kept for as long as the sandbox lives.
"""

# pathlib takes longer to load than the rest of this program:
# ruff: noqa: PTH102, PTH103, PTH112, PTH120, PTH211

import os

from rollcage.sandboxes.local.launch import kernel
from rollcage.sandboxes.local.launch.spec import Spec, become, limit, tell, wait_for_release

# Where the old root stays visible until everything needed from it is bound; any directory serves.
_BASE = "/tmp"  # noqa: S108 - only a mount point, in a mount namespace of its own
_OLD = "/oldroot"
_NEW = "/newroot"

_NAMESPACES = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWCGROUP
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_SIGKILL = 9


def launch(spec: Spec) -> None:
    """Start the sandbox as a sibling of this process, and tell its process id."""
    changes_user = os.geteuid() != spec["outer_uid"]
    if changes_user:
        os.setgroups([])
    mapped_read, mapped_write = os.pipe()
    child = kernel.clone(_NAMESPACES | kernel.CLONE_PARENT)
    if child == 0:
        os.close(mapped_write)
        _enter(spec, mapped_read)
        return
    # First of all: the child is the service's, which must know of it to bury it.
    tell(spec, child)
    # If any of this fails we end, the pipe closes, and the child ends as well.
    if not changes_user:
        _write(f"/proc/{child}/setgroups", "deny")
    _write(f"/proc/{child}/gid_map", f"{spec['gid']} {spec['outer_gid']} 1")
    _write(f"/proc/{child}/uid_map", f"{spec['uid']} {spec['outer_uid']} 1")
    os.write(mapped_write, b".")


def _enter(spec: Spec, mapped: int) -> None:
    if not os.read(mapped, 1):
        os._exit(1)
    os.close(mapped)
    os.close(spec["status"])
    os.setsid()
    os.setresgid(spec["gid"], spec["gid"], spec["gid"])
    os.setresuid(spec["uid"], spec["uid"], spec["uid"])
    kernel.die_with_parent(_SIGKILL)
    # If the parent died before that, nobody releases us.
    _leave_old_root_aside()
    for step in spec["root"]:
        _build(step)
    kernel.loopback_up()
    kernel.set_hostname(spec["hostname"])
    # Without nested namespaces there is no way to privileges that only look harmless.
    _write(f"{_NEW}/proc/sys/user/max_user_namespaces", "0")
    kernel.restrict_mount(_NEW, kernel.MOUNT_ATTR_RDONLY, recursive=False)
    _leave_old_root()
    wait_for_release(spec["hold"])
    limit(spec)
    kernel.drop_capabilities()
    if spec["filter"]:
        kernel.filter_calls(spec["filter"])
    become(spec)


def _leave_old_root_aside() -> None:
    # Nothing that happens here is seen outside.
    kernel.mount("none", "/", flags=kernel.MS_SLAVE | kernel.MS_REC)
    kernel.mount("tmpfs", _BASE, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755,size=1m,nr_inodes=64")
    os.mkdir(_BASE + _NEW)
    os.mkdir(_BASE + _OLD)
    kernel.pivot_root(_BASE, _BASE + _OLD)
    os.chdir("/")
    kernel.mount("tmpfs", _NEW, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=0755,size=1m,nr_inodes=1024")


def _leave_old_root() -> None:
    kernel.unmount(_OLD)
    os.chdir(_NEW)
    # Both at the same place: the old one lies on top then, and is taken off.
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")


def _build(step: list[str]) -> None:
    kind, target, *rest = step
    inside = _NEW + target
    if kind == "bind":
        _bind(_OLD + rest[0], inside)
    elif kind == "link":
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        os.symlink(rest[0], inside)
    elif kind == "memory":
        size, mode = int(rest[0]), rest[1]
        os.makedirs(inside, exist_ok=True)
        options = f"mode={mode},size={size},nr_inodes={_inodes(size)}"
        kernel.mount("tmpfs", inside, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, options)
    elif kind == "proc":
        os.makedirs(inside)
        kernel.mount("proc", inside, "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    elif kind == "devices":
        _devices(inside)
    elif kind == "read-only":
        kernel.restrict_mount(inside, kernel.MOUNT_ATTR_RDONLY, recursive=False)
    else:
        raise kernel.Refused(f"cannot build {kind}")


def _inodes(size: int) -> int:
    # One for every 4 KiB is what file systems on disk have; an inode costs about 1 KiB that size does not count.
    return max(1024, size // 4096)


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o444))
    kernel.mount(source, target, flags=kernel.MS_BIND | kernel.MS_REC)
    safe = kernel.MOUNT_ATTR_RDONLY | kernel.MOUNT_ATTR_NOSUID | kernel.MOUNT_ATTR_NODEV
    kernel.restrict_mount(target, safe, recursive=True)


def _devices(target: str) -> None:
    os.makedirs(target)
    kernel.mount("tmpfs", target, "tmpfs", kernel.MS_NOSUID, "mode=0755,size=64k,nr_inodes=64")
    for name in _DEVICES:
        os.close(os.open(f"{target}/{name}", os.O_CREAT | os.O_WRONLY, 0o666))
        kernel.mount(f"{_OLD}/dev/{name}", f"{target}/{name}", flags=kernel.MS_BIND)
    for name, where in _DEVICE_LINKS.items():
        os.symlink(where, f"{target}/{name}")
    os.mkdir(f"{target}/pts")
    kernel.mount("devpts", f"{target}/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, "newinstance,ptmxmode=0666")


def _write(path: str, text: str) -> None:
    # Not opened as text: Python would go looking for codecs where its files no longer are.
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
