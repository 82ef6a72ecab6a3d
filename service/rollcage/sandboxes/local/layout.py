"""
Decide what a sandbox finds in its root.

The host's own programs are its image, read-only; everything else is its own
and in memory. Nothing of /home, /root, /var, /opt or the host's secrets is in
it. Building it belongs to bubblewrap or to our own launcher.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollcage.sandboxes.local.limits import Limits

# As in the container image: the same commands find the same things.
UID: Final = 1000
GID: Final = 1000
WORKDIR: Final = "/workspace"
TOOLSERVER: Final = "/opt/rollcage/toolserver"

# Programs, and what they are linked with. Merged into /usr nearly everywhere, and links then.
PROGRAMS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")

# Of the host's settings only what programs need to start and what is the same on every machine.
SETTINGS: Final = tuple(
    f"/etc/{name}"
    for name in (
        *("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld-musl-x86_64.path", "ld-musl-aarch64.path"),
        *("ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/certs", "pki/ca-trust/extracted", "ca-certificates"),
        *("debian_version", "os-release", "localtime", "mime.types", "magic", "protocols", "services", "shells"),
        *("bash.bashrc", "inputrc", "terminfo", "perl", "python3", "fonts", "java", "crypto-policies"),
    )
)

# Written by us instead: the host's would name its people and its network.
OWN_SETTINGS: Final = {
    "passwd": f"root:x:0:0::/:/bin/sh\nsandbox:x:{UID}:{GID}::{WORKDIR}:/bin/bash\nnobody:x:65534:65534::/:\n",
    "group": f"root:x:0:\nsandbox:x:{GID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "resolv.conf": "",
    "hostname": "sandbox\n",
}

# What pods have unless told otherwise.
SHARED_MEMORY: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class Bind:
    """A path of the host, read-only."""

    target: str
    source: str


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link."""

    target: str
    to: str


@dataclass(frozen=True, slots=True)
class Memory:
    """A writable directory in memory, of a limited size."""

    target: str
    size: int
    mode: str = "0755"


@dataclass(frozen=True, slots=True)
class Devices:
    """The harmless devices."""

    target: str = "/dev"


@dataclass(frozen=True, slots=True)
class Processes:
    """A view of the sandbox's own processes."""

    target: str = "/proc"


@dataclass(frozen=True, slots=True)
class ReadOnly:
    """From here on nothing more is made in this directory itself."""

    target: str


Step = Bind | Link | Memory | Devices | Processes | ReadOnly


@dataclass(frozen=True, slots=True)
class Host:
    """What there is on this machine."""

    present: Mapping[str, str]
    """Directories and files to bind, and where they really are."""
    links: Mapping[str, str]
    """Links to repeat, and where they lead."""


def look_around() -> Host:
    """Look which of the usual paths this machine has."""
    # On most machines /bin is /usr/bin.
    links = {name: str(Path(name).readlink()) for name in PROGRAMS if Path(name).is_symlink()}
    usual = (name for name in (*PROGRAMS, *SETTINGS) if name not in links)
    # What a link leads to is found now: from within a half-built root it would lead elsewhere.
    return Host({name: str(Path(name).resolve()) for name in usual if Path(name).exists()}, links)


def root(
    host: Host, *, toolserver: Path, settings: Path, workdir: str, limits: Limits, cgroups: Mapping[str, Path]
) -> tuple[Step, ...]:
    """
    Return the steps that build a root, in order.

    *settings* is where our own settings are, *cgroups* where the sandbox finds
    its own counters.
    """
    programs = [Link(name, to) for name, to in sorted(host.links.items())]
    binds = [Bind(name, source) for name, source in host.present.items()]
    own = [Bind(f"/etc/{name}", str(settings / name)) for name in OWN_SETTINGS]
    counters = [Bind(target, str(source)) for target, source in sorted(cgroups.items())]
    return (
        *programs,
        *binds,
        *own,
        Devices(),
        Memory("/dev/shm", SHARED_MEMORY, "1777"),  # noqa: S108 - the sandbox's own
        ReadOnly("/dev"),
        Processes(),
        *counters,
        Memory("/tmp", limits.temporary, "1777"),  # noqa: S108 - the sandbox's own
        Link("/var/tmp", "/tmp"),  # noqa: S108 - the sandbox's own
        Memory(workdir, limits.workspace),
        Bind(TOOLSERVER, str(toolserver)),
    )
