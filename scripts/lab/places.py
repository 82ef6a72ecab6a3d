"""
Where things are: the checkout, the cache outside it, and keys for what is cached.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("ROLLCAGE_CACHE", Path.home() / ".cache" / "rollcage"))
NODE = ROOT / "images" / "kind-node"


def cache(*names: str) -> Path:
    """Return a directory of the cache, made if need be."""
    path = CACHE.joinpath(*names)
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def scratch() -> Iterator[Path]:
    """Lend a directory on the cache's own file system, so that results can be renamed into place."""
    with tempfile.TemporaryDirectory(dir=cache("tmp")) as path:
        yield Path(path)


def fingerprint(*facts: str, files: Iterable[Path] = ()) -> str:
    """Hash facts and the files at and below some paths into a short key."""
    digest = hashlib.sha256("\0".join(facts).encode())
    for top in files:
        for path in sorted([top] if top.is_file() else top.rglob("*")):
            if path.is_file():
                mode = "x" if os.access(path, os.X_OK) else "-"
                digest.update(f"\0{path.relative_to(top.parent)}\0{mode}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
