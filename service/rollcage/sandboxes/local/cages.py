"""
Decide what surrounds one sandbox in each tier.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollcage.sandboxes.local import layout
from rollcage.sandboxes.local.cgroups import Cgroup
from rollcage.sandboxes.local.command import Cage
from rollcage.sandboxes.local.layout import Host
from rollcage.sandboxes.local.limits import Limits, wanted
from rollcage.sandboxes.local.place import Place
from rollcage.sandboxes.local.tiers import Tier

# Without a root of its own a sandbox sees the host's accounts, and no more of them than their names.
_HOST_SETTINGS: Final = ("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts")
_READABLE_DEVICES: Final = ("/dev/random", "/dev/urandom")
_WRITABLE_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full")
_SEARCHED: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A sandbox's cage, and what its programs are told about it."""

    cage: Cage
    env: dict[str, str]
    workspace: str


def surround(
    tier: Tier,
    key: str,
    *,
    host: Host,
    place: Place,
    arguments: tuple[str, ...],
    workspace: str,
    limits: Limits,
    processes: int,
    user: int | None,
    cgroup: Cgroup | None,
) -> Surroundings:
    """Return the surroundings of one sandbox."""
    resources = wanted(limits, processes)
    if tier in {Tier.BUBBLEWRAP, Tier.NAMESPACES}:
        root = layout.root(
            host,
            toolserver=place.toolserver,
            settings=place.settings,
            workdir=workspace,
            limits=limits,
            cgroups=cgroup.shown if cgroup else {},
        )
        cage = Cage(tier, (layout.TOOLSERVER, *arguments), workspace, user, resources, limits.niceness, root=root)
        return Surroundings(cage, _env(home=workspace), workspace)
    # There is one /workspace on this machine at best: each sandbox gets a directory of its own instead.
    work = place.work(key)
    own = (str(work / "workspace"), str(work / "tmp"))
    cage = Cage(
        tier,
        (str(place.toolserver), *arguments),
        own[0],
        user,
        resources,
        limits.niceness,
        readable=_readable(host, place, cgroup),
        writable=(*own, *(name for name in _WRITABLE_DEVICES if Path(name).exists())),
    )
    # The host's git settings are forbidden, not absent, and git makes a difference.
    return Surroundings(cage, _env(home=own[0], TMPDIR=own[1], GIT_CONFIG_NOSYSTEM="1"), own[0])


def _readable(host: Host, place: Place, cgroup: Cgroup | None) -> tuple[str, ...]:
    counters = () if cgroup is None else tuple(map(str, cgroup.directories.values()))
    # A link may be named as well as what it leads to: the rule is for that.
    usual = (*host.present.values(), *host.links, *_HOST_SETTINGS, *_READABLE_DEVICES, "/proc")
    return (*(name for name in usual if Path(name).exists()), str(place.toolserver), *counters)


def _env(*, home: str, **more: str) -> dict[str, str]:
    return {"PATH": _SEARCHED, "HOME": home, "USER": "sandbox", "LANG": "C.UTF-8", **more}
