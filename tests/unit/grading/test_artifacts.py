"""Archives out of a sandbox are hostile, and are only looked at."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.grading import Artifacts
from rollcage.grading.artifacts import packed

NAMES = st.from_regex(r"[a-z]{1,8}(/[a-z]{1,8}){0,2}", fullmatch=True)


def archive(*members: tarfile.TarInfo, content: bytes = b"") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, link
    return made


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "..", "./../x"])
def test_a_name_that_climbs_is_left_out(name: str) -> None:
    assert Artifacts.read({"src": archive(member(name))}).names == ()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE])
def test_only_regular_files_are_taken(kind: bytes) -> None:
    assert Artifacts.read({"src": archive(member("x", kind, "/etc/passwd"))}).names == ()


def test_a_second_name_of_a_file_is_the_same_file_and_nothing_else_can_be_linked() -> None:
    given = archive(member("a"), member("b", tarfile.LNKTYPE, "a"), member("c", tarfile.LNKTYPE, "/etc/passwd"))
    found = Artifacts.read({"src": given})
    assert found.names == ("src/a", "src/b")


def test_a_file_that_claims_to_be_huge_does_not_fill_the_memory() -> None:
    sparse = member("x")
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.realsize": str(1 << 50)}
    assert Artifacts.read({"src": archive(sparse, content=b"0\n")}).get("src/x") is None


@given(st.binary(max_size=2000))
def test_no_bytes_break_the_reader(content: bytes) -> None:
    found = Artifacts.read({"src": content})
    assert found.names == () or found.trees


@given(st.dictionaries(NAMES, st.binary(max_size=50), max_size=5))
def test_what_is_packed_is_read_back(named: dict[str, bytes]) -> None:
    assert Artifacts.read({".": packed(named)}).trees["."] == named


def test_patterns_reach_over_directories_and_to_the_top() -> None:
    found = Artifacts({"src": {"conftest.py": b"", "a/conftest.py": b"", "a/b.py": b""}})
    assert found.without(("**/conftest.py",)).names == ("src/a/b.py",)
    assert set(found.matching(("src/a/*",))) == {"src/a/conftest.py", "src/a/b.py"}
