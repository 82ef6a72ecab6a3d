"""
Whatever builds images here: docker, podman or buildah, behind the few things we ask of it.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab import engine
from lab.talk import LabError, run, succeeds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PROGRAMS = ("docker", "podman", "buildah")


@dataclass(frozen=True)
class Builder:
    """One of the programs, and the environment in which it finds its store."""

    program: str
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def has(self, image: str) -> bool:
        """Tell whether its store has an image."""
        look = ["inspect", "--type=image"] if self.program == "buildah" else ["image", "inspect"]
        return succeeds([self.program, *look, image], env=self.env)

    def can_pull(self, image: str) -> bool:
        """Tell whether an image is here or can be brought here."""
        return self.has(image) or succeeds(["timeout", "300", self.program, "pull", "-q", image], env=self.env)

    def build(self, context: Path, *, tag: str, args: Mapping[str, str], network: bool) -> None:
        """Build the Dockerfile of a directory."""
        flags = [f"--build-arg={name}={value}" for name, value in args.items()]
        flags += [] if network else ["--network=none"]
        run([self.program, "build", "--quiet", *flags, f"--tag={tag}", context], env=self.env)

    def tag(self, image: str, name: str) -> None:
        """Give an image of its store another name."""
        run([self.program, "tag", image, name], env=self.env)

    def save(self, image: str, archive: Path) -> None:
        """Write an image into a docker archive."""
        if self.program == "buildah":
            run(["buildah", "push", image, f"docker-archive:{archive}:{image}"], env=self.env)
        else:
            run([self.program, "save", "-o", archive, image], env=self.env)


def find(wanted: str | None, *, install: bool) -> Builder:
    """Return the builder that was asked for, else the first that works, else docker on an engine of our own."""
    for program in [wanted] if wanted else PROGRAMS:
        if program == "docker":
            found = engine.running()
            if found or wanted:
                return Builder("docker", (found or engine.ensure(install=install)).env)
        elif shutil.which(program) and succeeds([program, "info"]):
            return Builder(program)
    if wanted:
        raise LabError(f"{wanted} is not installed or does not work here", "leave --with out, or install it")
    return Builder("docker", engine.ensure(install=install).env)
