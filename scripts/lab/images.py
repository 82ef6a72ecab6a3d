"""
Build the project's own images, and say what they are called. The command line of ``scripts/images``.

Each is a directory of ``images/`` with a Dockerfile. A Debian base is pulled
where that is possible, and made with debootstrap elsewhere. An image whose
content has been built before is only named again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import TYPE_CHECKING

from lab import builder, debian, wheels
from lab.places import ROOT, fingerprint, scratch
from lab.talk import LabError, complain, run, say, step

if TYPE_CHECKING:
    from pathlib import Path

    from lab.builder import Builder

IMAGES = ROOT / "images"
TAG = "dev"
# In the order in which they build on each other.
OURS = ("toolserver", "sandbox", "service", "redis")
ON_DEBIAN = ("sandbox", "service", "redis")
GO_BUILD = ("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w")


def reference(name: str) -> str:
    """Return the full name of one of our images: with a host, or each program would imagine another one."""
    return f"rollcage.local/{name}:{TAG}"


def build_toolserver(target: Path) -> None:
    """Compile the static toolserver into a file."""
    env = {**os.environ, "CGO_ENABLED": "0"}
    # It speaks HTTP/1.1 only, and what is not linked takes no memory in every sandbox.
    run([*GO_BUILD, "-tags=nethttpomithttp2", "-o", target, "."], cwd=IMAGES / "toolserver", env=env)


def build(make: Builder, name: str, *, install: bool) -> None:
    """Build one of our images, unless the builder has one of the same content."""
    with scratch() as tmp:
        context = tmp / name
        shutil.copytree(IMAGES / name, context)
        args: dict[str, str] = {}
        network = False
        if name in {"toolserver", "sandbox"}:
            build_toolserver(context / "toolserver")
        if name == "service":
            wheels.assemble(context)
        if name in ON_DEBIAN:
            args["BASE"], network = _base(make, context / "packages.txt", install=install)
        content = f"{reference(name)}-{fingerprint(*args.values(), files=[context])}"
        if make.has(content):
            say(f"{reference(name)} is built already")
        else:
            with step(f"building {reference(name)} with {make.program}"):
                make.build(context, tag=content, args=args, network=network)
        make.tag(content, reference(name))


def _base(make: Builder, listing: Path, *, install: bool) -> tuple[str, bool]:
    """Return a Debian base for a package list, and whether the build has to fetch the packages itself."""
    if make.can_pull(debian.PUBLISHED):
        return debian.PUBLISHED, True
    return debian.made_image(make, debian.packages_in(listing), install=install), False


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says; 0 when it was done."""
    parser = argparse.ArgumentParser(prog="scripts/images", description="The project's own images.")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("build", help="build images/*")
    make.add_argument("name", nargs="*", choices=[*OURS, []], help="which (default: all)")
    make.add_argument("--with", dest="program", choices=builder.PROGRAMS, help="default: the first that works")
    make.add_argument("--install", action="store_true", help="install missing system packages (Debian, root)")
    commands.add_parser("list", help="print the images' names")
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "list":
            print("\n".join(reference(name) for name in OURS))
        else:
            found = builder.find(arguments.program, install=arguments.install)
            for name in arguments.name or OURS:
                build(found, name, install=arguments.install)
    except LabError as error:
        return complain(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
