"""
Make a container image archive out of one directory, without an engine.

The result is what ``docker save`` writes, is owned by root throughout, and is
the same to the byte for the same directory.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

EPOCH = "1970-01-01T00:00:00Z"


def write_image(target: Path, *, tags: Sequence[str], root: Path, config: dict[str, Any]) -> None:
    """Write the image with *root* as its only layer and *config* as its container configuration."""
    with tempfile.TemporaryFile(dir=target.parent) as layer:
        with tarfile.open(fileobj=layer, mode="w") as tar:
            for entry in sorted(root.iterdir()):
                tar.add(entry, arcname=entry.name, filter=_plain)
        digest = _digest(layer)
        image = {
            "architecture": "amd64",
            "os": "linux",
            "created": EPOCH,
            "config": config,
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": EPOCH}],
        }
        encoded = json.dumps(image).encode()
        name = f"{hashlib.sha256(encoded).hexdigest()}.json"
        manifest = [{"Config": name, "RepoTags": list(tags), "Layers": [f"{digest}/layer.tar"]}]
        with tarfile.open(target, "w") as tar:
            _add(tar, name, io.BytesIO(encoded), len(encoded))
            listing = json.dumps(manifest).encode()
            _add(tar, "manifest.json", io.BytesIO(listing), len(listing))
            size = layer.seek(0, io.SEEK_END)
            layer.seek(0)
            _add(tar, f"{digest}/layer.tar", layer, size)


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def _digest(stream: BinaryIO) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def _add(tar: tarfile.TarFile, name: str, content: BinaryIO, size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = size
    tar.addfile(entry, content)
