from __future__ import annotations

import json
import os
import tarfile
from typing import TYPE_CHECKING

import pytest

from lab.archive import write_image

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "pause").write_bytes(b"\x7fELF")
    (root / "bin" / "pause").chmod(0o755)
    return root


def write(target: Path, root: Path) -> Path:
    write_image(target, tags=["pause:1"], root=root, config={"Entrypoint": ["/bin/pause"]})
    return target


def test_the_archive_is_the_same_whenever_it_is_written(tmp_path: Path, root: Path) -> None:
    first = write(tmp_path / "a.tar", root).read_bytes()
    os.utime(root / "bin" / "pause", (1, 1))

    assert write(tmp_path / "b.tar", root).read_bytes() == first


def test_the_manifest_names_the_tag_the_configuration_and_the_layer(tmp_path: Path, root: Path) -> None:
    with tarfile.open(write(tmp_path / "a.tar", root)) as tar:
        manifest = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
        config = json.load(tar.extractfile(manifest[0]["Config"]))  # type: ignore[arg-type]
        with tarfile.open(fileobj=tar.extractfile(manifest[0]["Layers"][0])) as layer:
            entry = layer.getmember("bin/pause")

    assert manifest[0]["RepoTags"] == ["pause:1"]
    assert config["config"]["Entrypoint"] == ["/bin/pause"]
    assert (entry.uid, entry.gid, entry.mode & 0o777) == (0, 0, 0o755)
