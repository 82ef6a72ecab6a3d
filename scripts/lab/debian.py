"""
Debian base images: pulled where that is possible, else made with debootstrap.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lab import packages
from lab.places import cache, fingerprint, scratch
from lab.talk import LabError, run, step

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lab.builder import Builder

RELEASE = "bookworm"
PUBLISHED = f"debian:{RELEASE}-slim"
# What no container needs; half of the size.
LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")


def packages_in(listing: Path) -> list[str]:
    """Read package names from a file, one a line, with comments after ``#``."""
    lines = (line.split("#")[0].strip() for line in listing.read_text().splitlines())
    return [line for line in lines if line]


def made_image(make: Builder, include: Sequence[str], *, install: bool) -> str:
    """Return the name of an image with Debian and some packages, made here."""
    tarball = root_tarball(include, install=install)
    name = f"rollcage/debian:{tarball.stem}"
    if not make.has(name):
        with step(f"importing {name}"), scratch() as context:
            os.link(tarball, context / tarball.name)
            (context / "Dockerfile").write_text(f"FROM scratch\nADD {tarball.name} /\n")
            make.build(context, tag=name, args={}, network=False)
    return name


def root_tarball(include: Sequence[str], *, install: bool) -> Path:
    """Return a tar of a Debian root with some packages."""
    target = cache("debian") / f"{RELEASE}-{fingerprint(RELEASE, *sorted(include))}.tar"
    if target.exists():
        return target
    packages.need("debootstrap", install=install)
    if os.geteuid() != 0:
        raise LabError("making a Debian base image takes root", "run as root, or let docker pull " + PUBLISHED)
    with step(f"making a Debian root with {len(include)} packages"), scratch() as tmp:
        root = tmp / "root"
        run(
            ["debootstrap", "--variant=minbase", f"--include={','.join(include)}", RELEASE, root],
            log=cache("logs") / "debootstrap.log",
            hint="is the Debian mirror reachable?",
        )
        excludes = [f"--exclude=./{path}/*" for path in (*LEFT_OUT, "proc", "sys", "dev")]
        run(["tar", "-C", root, "--numeric-owner", *excludes, "-cf", tmp / "root.tar", "."])
        (tmp / "root.tar").rename(target)
    return target


def unpack(tarball: Path, into: Path) -> None:
    """Unpack a root made by :func:`root_tarball`."""
    run(["tar", "-C", into, "-xf", tarball])
