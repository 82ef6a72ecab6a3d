from __future__ import annotations

from typing import TYPE_CHECKING

from lab.places import fingerprint

if TYPE_CHECKING:
    from pathlib import Path


def test_a_fingerprint_is_the_same_for_the_same_things(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")

    assert fingerprint("x", files=[tmp_path]) == fingerprint("x", files=[tmp_path])


def test_a_fingerprint_changes_with_a_fact(tmp_path: Path) -> None:
    assert fingerprint("x", files=[tmp_path]) != fingerprint("y", files=[tmp_path])


def test_a_fingerprint_changes_with_a_files_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    before = fingerprint(files=[tmp_path])

    (tmp_path / "a").write_text("two")

    assert fingerprint(files=[tmp_path]) != before


def test_a_fingerprint_changes_when_a_file_becomes_executable(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    before = fingerprint(files=[tmp_path])

    (tmp_path / "a").chmod(0o755)

    assert fingerprint(files=[tmp_path]) != before
