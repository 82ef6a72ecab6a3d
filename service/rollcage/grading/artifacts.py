"""
What was taken out of a sandbox, in memory: names and bytes, never written to a disk.

The archives are hostile. Only regular files and links between them are taken,
within bounds; names that climb are left out. Nothing is unpacked, so nothing
can be overwritten.
"""

import fnmatch
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

# More than that nobody wrote by hand, and each costs more than its bytes.
MOST_FILES: Final = 20_000
MOST_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Files by directory; *absent* says of directories that could not be had, by the model's own doing, why."""

    trees: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, archives: Mapping[str, bytes], absent: Mapping[str, str] | None = None) -> Self:
        """Read tar archives; one that is none counts as absent."""
        trees: dict[str, Mapping[str, bytes]] = {}
        missing = dict(absent or {})
        for path, archive in archives.items():
            try:
                trees[path] = dict(_members(archive))
            except (tarfile.TarError, ValueError, OverflowError, RecursionError, EOFError) as error:
                missing[path] = f"cannot be read: {type(error).__name__}"
        return cls(trees, missing)

    @property
    def names(self) -> tuple[str, ...]:
        """All files, each below the directory that it came from."""
        return tuple(sorted(_below(path, name) for path, files in self.trees.items() for name in files))

    def get(self, name: str) -> bytes | None:
        """Return a file's content, or None."""
        return next(
            (files[one] for path, files in self.trees.items() for one in files if _below(path, one) == name), None
        )

    def text(self, name: str) -> str | None:
        """Return a file as text, whatever its bytes are, or None."""
        content = self.get(name)
        return None if content is None else content.decode(errors="replace")

    def matching(self, patterns: tuple[str, ...]) -> Mapping[str, bytes]:
        """Return the files whose names match, ``*`` reaching over slashes."""
        found = {_below(path, name): content for path, files in self.trees.items() for name, content in files.items()}
        return {name: content for name, content in found.items() if _matches(name, patterns)}

    def without(self, patterns: tuple[str, ...]) -> Self:
        """Return the same without the files whose names match."""
        kept = {
            path: {name: content for name, content in files.items() if not _matches(_below(path, name), patterns)}
            for path, files in self.trees.items()
        }
        return type(self)(kept, self.absent)

    def archives(self) -> dict[str, bytes]:
        """Return each directory as a tar archive of plain files."""
        return {path: packed(files) for path, files in self.trees.items()}


def packed(files: Mapping[str, bytes]) -> bytes:
    """Return files as a tar archive, the same for the same files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


def _members(archive: bytes) -> Iterator[tuple[str, bytes]]:
    seen: dict[str, bytes] = {}
    left = MOST_BYTES
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
        for member in opened:
            name = member.name.removeprefix("./")
            if not name or name.startswith("/") or ".." in name.split("/"):
                continue
            # A sparse member may claim any size in a few bytes.
            if member.isreg() and not member.issparse():
                left -= member.size
                if left < 0 or len(seen) >= MOST_FILES:
                    raise ValueError("too many files, or too large ones")
                reader = opened.extractfile(member)
                seen[name] = reader.read() if reader else b""
            elif member.islnk() and member.linkname.removeprefix("./") in seen:
                seen[name] = seen[member.linkname.removeprefix("./")]
            else:
                continue
            yield name, seen[name]


def _below(path: str, name: str) -> str:
    return name if path in {".", "./"} else f"{path.rstrip('/')}/{name}"


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    # "**/x" means x at the top as well.
    return any(
        fnmatch.fnmatchcase(name, pattern) or (pattern.startswith("**/") and fnmatch.fnmatchcase(name, pattern[3:]))
        for pattern in patterns
    )
