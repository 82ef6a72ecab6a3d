"""Archives that a hostile sandbox may send."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from rollcage.client.archives import packed, unpack
from rollcage.client.errors import UnsafeArchive

if TYPE_CHECKING:
    from pathlib import Path


def archive(path: Path, *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def file(name: str, size: int = 1) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    return member


def test_a_directory_survives_the_way(tmp_path: Path) -> None:
    (tmp_path / "ours/deep").mkdir(parents=True)
    (tmp_path / "ours/deep/file").write_text("hi")
    (tmp_path / "ours/deep/file").chmod(0o6777)
    with packed(tmp_path / "ours") as packet:
        assert unpack(packet, tmp_path / "theirs") == 2
    found = tmp_path / "theirs/deep/file"
    assert (found.read_text(), oct(found.stat().st_mode & 0o7777)) == ("hi", "0o755")


def test_a_link_out_of_the_directory_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    packet = archive(tmp_path / "a.tar", link("out", str(tmp_path / "outside")), file("out/planted"))
    unpack(packet, tmp_path / "target")
    assert list((tmp_path / "outside").iterdir()) == []
    assert not (tmp_path / "target/out").is_symlink()


@pytest.mark.parametrize("name", ["../planted", "a/../../planted", "/planted"])
def test_a_name_out_of_the_directory_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsafeArchive):
        unpack(archive(tmp_path / "a.tar", file(name)), tmp_path / "target")
    assert not (tmp_path / "planted").exists()


def test_devices_and_hard_links_are_left_behind(tmp_path: Path) -> None:
    members = (link("null", "", tarfile.CHRTYPE), link("pipe", "", tarfile.FIFOTYPE), link("h", "x", tarfile.LNKTYPE))
    assert unpack(archive(tmp_path / "a.tar", *members), tmp_path / "target") == 0
    assert list((tmp_path / "target").iterdir()) == []
