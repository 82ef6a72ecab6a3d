"""
The service and its locked libraries, for its image.

Wheels of the image's Python, whatever Python runs this; nothing is compiled.
The libraries lie in the cache under the lock's own hash.
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from lab.places import ROOT, cache, fingerprint, scratch
from lab.talk import run, step

if TYPE_CHECKING:
    from pathlib import Path

LOCK = ROOT / "requirements" / "service.lock"
PACKAGE = ROOT / "service" / "rollcage"
# Debian bookworm's, the base of the image.
PYTHON = "3.11"
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64")


def assemble(into: Path) -> None:
    """Put the libraries below ``lib`` and the package below ``service``: layers that change at different times."""
    # Linked, not copied: there are thousands of files.
    shutil.copytree(_libraries(), into / "lib", copy_function=os.link)
    shutil.copytree(PACKAGE, into / "service" / "rollcage", ignore=shutil.ignore_patterns("__pycache__"))


def _libraries() -> Path:
    target = cache("wheels") / f"service-{fingerprint(PYTHON, *PLATFORMS, files=[LOCK])}"
    if target.is_dir():
        return target
    with step("fetching the service's libraries"), scratch() as tmp:
        choose = ["--only-binary=:all:", "--implementation=cp", f"--python-version={PYTHON}"]
        run(
            [
                *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"),
                *("--require-hashes", "-r", LOCK, "--target", tmp / "lib"),
                *choose,
                *(f"--platform={one}" for one in PLATFORMS),
            ],
            hint="is the package index reachable?",
        )
        # Scripts name the Python that installed them, which the image does not have.
        shutil.rmtree(tmp / "lib" / "bin", ignore_errors=True)
        (tmp / "lib").rename(target)
    return target
