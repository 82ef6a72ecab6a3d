"""
Directories as tar archives, packed for a sandbox and unpacked from one.

What comes out of a sandbox was written by a model: only plain files and
directories are unpacked, nothing outside the target, no links, no devices.
"""

import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from rollcage.client.errors import UnsafeArchive


@contextmanager
def packed(directory: Path) -> Iterator[Path]:
    """Lend a directory as a tar archive."""
    with temporary() as archive:
        with tarfile.open(archive, "w") as tar:
            for entry in sorted(directory.iterdir()):
                tar.add(entry, arcname=entry.name)
        yield archive


@contextmanager
def temporary() -> Iterator[Path]:
    """Lend the path of a file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rollcage-") as home:
        yield Path(home) / "archive.tar"


def unpack(archive: Path, target: Path) -> int:
    """Unpack an archive into a directory, which is made; return how many entries came of it."""
    target.mkdir(parents=True, exist_ok=True)
    taken = 0
    with tarfile.open(archive) as tar:
        for member in tar:
            # Links are how archives get out of their directory.
            if not (member.isfile() or member.isdir()):
                continue
            path = _inside(target, member.name)
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            else:
                _write(tar, member, path)
            taken += 1
    return taken


def _inside(target: Path, name: str) -> Path:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts:
        raise UnsafeArchive("an entry of the archive would lie outside of the directory; nothing more was unpacked")
    return target.joinpath(*parts.parts)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None  # noqa: S101 - a regular file has one
    with content, path.open("wb") as file:
        shutil.copyfileobj(content, file)
    # Whether it can be run is all that is kept of its mode.
    path.chmod(0o755 if member.mode & 0o100 else 0o644)
