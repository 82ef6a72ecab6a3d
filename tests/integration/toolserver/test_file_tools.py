"""The tools that read, write, list and search files: `read_file`, `write_file`, `list`, `search`."""

from __future__ import annotations

import base64
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.wire.messages import OutcomeClass

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import LocalToolserver

TEN_LINES = "".join(f"line {n}\n" for n in range(1, 11))


class TestReadFile:
    @pytest.fixture(autouse=True)
    def files(self, workdir: Path) -> None:
        (workdir / "ten").write_text(TEN_LINES)
        (workdir / "empty").touch()
        (workdir / "binary").write_bytes(bytes(range(256)))
        (workdir / "latin").write_bytes(b"gr\xfc\xdf\n")

    @pytest.mark.parametrize(
        ("arguments", "output"),
        [
            ({"path": "ten"}, TEN_LINES),
            ({"path": "ten", "offset": 10}, "line 10\n"),
            ({"path": "ten", "offset": 2, "limit": 2}, "line 2\nline 3\n[lines 2-3; continue with offset 4]"),
            ({"path": "ten", "limit": 1, "numbered": True}, "     1\tline 1\n[lines 1-1; continue with offset 2]"),
            ({"path": "empty"}, "[the file is empty]"),
            ({"path": "latin"}, "gr\ufffd\ufffd\n[invalid UTF-8 is shown as U+FFFD]"),
            ({"path": "binary", "encoding": "base64"}, base64.b64encode(bytes(range(256))).decode()),
        ],
        ids=["a whole file", "from a line on", "a range", "numbered lines", "nothing", "bad bytes", "bytes as base64"],
    )
    def test_returns(self, sandbox: LocalToolserver, arguments: dict[str, Any], output: str) -> None:
        result = sandbox.call("read_file", **arguments)

        assert (result.outcome, result.output) == (OutcomeClass.OK, output)

    def test_says_where_to_continue_a_file_that_is_too_long(self, sandbox: LocalToolserver, workdir: Path) -> None:
        (workdir / "long").write_text("x" * 99 + "\n" + "y" * 99 + "\n" * 5000 + "z\n" * 50_000)
        lines, offset = 0, 1

        while offset:
            page = sandbox.call("read_file", path="long", offset=offset)
            assert page.outcome == OutcomeClass.OK
            assert len(page.output) <= 65536
            lines += page.data["last"] - page.data["first"] + 1
            offset = page.data.get("next", 0)

        assert lines == 1 + 5000 + 50_000

    @pytest.mark.parametrize(
        ("path", "text"),
        [
            ("missing", "no such file or directory"),
            (".", "is a directory"),
            ("binary", "is binary"),
            ("/dev/zero", "only regular files"),
            ("/proc/self/environ", "permission denied|is in /proc"),
            ("/proc/1/environ", "permission denied|is in /proc"),
            ("fifo", "a FIFO"),
            ("socket", "a socket"),
            ("loop", "too many levels of symbolic links"),
            ("\0", "NUL"),
        ],
    )
    def test_refuses(self, sandbox: LocalToolserver, workdir: Path, path: str, text: str) -> None:
        os.mkfifo(workdir / "fifo")
        os.mknod(workdir / "socket", stat.S_IFSOCK | 0o600)
        (workdir / "loop").symlink_to("loop")

        result = sandbox.call("read_file", path=path)

        assert result.outcome in {OutcomeClass.FAILED, OutcomeClass.MALFORMED}
        assert any(part in result.output for part in text.split("|")), result.output

    def test_a_line_beyond_the_end_is_refused_with_the_length(self, sandbox: LocalToolserver) -> None:
        assert sandbox.call("read_file", path="ten", offset=99).output.endswith("has only 10 lines")

    def test_a_sparse_file_of_terabytes_costs_nothing(self, sandbox: LocalToolserver, workdir: Path) -> None:
        with (workdir / "sparse").open("wb") as sparse:
            sparse.truncate(1 << 42)

        assert sandbox.call("read_file", path="sparse").outcome == OutcomeClass.FAILED
        part = sandbox.call("read_file", path="sparse", encoding="base64", offset=1 << 41, limit=3)
        assert part.output.startswith("AAAA")
        assert sandbox.peak_memory() < 64 << 20

    @pytest.mark.parametrize(
        "arguments",
        [{}, {"path": ""}, {"path": "ten", "offset": 0}, {"path": "ten", "limit": -1}, {"path": "ten", "lines": 3}],
    )
    def test_bad_arguments_are_malformed(self, sandbox: LocalToolserver, arguments: dict[str, Any]) -> None:
        assert sandbox.call("read_file", **arguments).outcome == OutcomeClass.MALFORMED


class TestWriteFile:
    def test_makes_directories_and_the_file(self, sandbox: LocalToolserver, workdir: Path) -> None:
        result = sandbox.call("write_file", path="a/b/c.txt", content="grüße\n")

        assert result.outcome == OutcomeClass.OK
        assert result.data == {"path": str(workdir / "a/b/c.txt"), "bytes": 8}
        assert (workdir / "a/b/c.txt").read_text() == "grüße\n"

    def test_takes_bytes_as_base64_and_a_mode(self, sandbox: LocalToolserver, workdir: Path) -> None:
        content = base64.b64encode(b"#!/bin/sh\necho \xff\n").decode()

        sandbox.call("write_file", path="script", content=content, encoding="base64", mode="0755")

        assert (workdir / "script").read_bytes() == b"#!/bin/sh\necho \xff\n"
        assert stat.S_IMODE((workdir / "script").stat().st_mode) == 0o755

    def test_replaces_a_file_and_keeps_its_mode(self, sandbox: LocalToolserver, workdir: Path) -> None:
        (workdir / "old").write_text("old")
        (workdir / "old").chmod(0o600)

        sandbox.call("write_file", path="old", content="new")

        assert (workdir / "old").read_text() == "new"
        assert stat.S_IMODE((workdir / "old").stat().st_mode) == 0o600

    def test_leaves_nothing_beside_the_file(self, sandbox: LocalToolserver, workdir: Path) -> None:
        sandbox.call("write_file", path="one", content="x")

        assert [path.name for path in workdir.iterdir()] == ["one"]

    @pytest.mark.parametrize(
        ("arguments", "outcome"),
        [
            ({"path": "x", "content": "!", "encoding": "base64"}, OutcomeClass.MALFORMED),
            ({"path": "x", "content": "", "mode": "999"}, OutcomeClass.MALFORMED),
            ({"path": "x", "content": "", "mode": "4755"}, OutcomeClass.MALFORMED),
            ({"path": "x"}, OutcomeClass.MALFORMED),
            ({"path": "/proc/nothing", "content": ""}, OutcomeClass.FAILED),
            ({"path": ".", "content": ""}, OutcomeClass.FAILED),
        ],
        ids=["not base64", "not a mode", "a set-uid mode", "no content", "where nothing can be", "a directory"],
    )
    def test_refuses(
        self, sandbox: LocalToolserver, workdir: Path, arguments: dict[str, Any], outcome: OutcomeClass
    ) -> None:
        assert sandbox.call("write_file", **arguments).outcome == outcome
        assert list(workdir.iterdir()) == []


@pytest.fixture
def tree(workdir: Path) -> Path:
    """A small project."""
    for name, content in {
        "README": "Hello World\n",
        "src/main.py": "import os\n\ndef hello():\n    return 'hello'\n",
        "src/deep/er/util.py": "def helper():\n    pass\n",
        "src/data.bin": "hello\0",
        "node_modules/x.py": "def hello(): ...\n",
    }.items():
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_text(content)
    (workdir / "link").symlink_to("README")
    return workdir


@pytest.mark.usefixtures("tree")
class TestList:
    def test_shows_types_and_sizes_of_one_level(self, sandbox: LocalToolserver) -> None:
        result = sandbox.call("list")

        entries = {entry["path"]: (entry["type"], entry["size"]) for entry in result.data["entries"]}
        assert entries == {"README": ("f", 12), "link": ("l", 0), "node_modules": ("d", 0), "src": ("d", 0)}
        assert "link -> README\n" in result.output

    def test_goes_as_deep_as_it_is_told(self, sandbox: LocalToolserver) -> None:
        paths = {entry["path"] for entry in sandbox.call("list", path="src", depth=2).data["entries"]}

        assert paths == {"main.py", "data.bin", "deep", "deep/er"}

    def test_says_that_there_is_more(self, sandbox: LocalToolserver) -> None:
        result = sandbox.call("list", limit=2)

        assert len(result.data["entries"]) == 2
        assert not result.data["complete"]
        assert "only the first 2" in result.output

    def test_a_missing_directory_fails(self, sandbox: LocalToolserver) -> None:
        assert sandbox.call("list", path="nowhere").outcome == OutcomeClass.FAILED

    def test_bad_arguments_are_malformed(self, sandbox: LocalToolserver) -> None:
        assert sandbox.call("list", depth=0).outcome == OutcomeClass.MALFORMED


@pytest.mark.usefixtures("tree")
class TestSearch:
    def found(self, sandbox: LocalToolserver, **arguments: Any) -> set[tuple[str, int]]:
        result = sandbox.call("search", **arguments)
        assert result.outcome == OutcomeClass.OK, result.output
        return {(match["path"], match["line"]) for match in result.data["matches"]}

    def test_finds_a_text_and_skips_binary_files(self, sandbox: LocalToolserver) -> None:
        assert self.found(sandbox, pattern="hello") == {
            ("src/main.py", 3),
            ("src/main.py", 4),
            ("node_modules/x.py", 1),
        }

    def test_takes_a_pattern_literally_unless_told(self, sandbox: LocalToolserver) -> None:
        assert self.found(sandbox, pattern="hel.o") == set()
        assert self.found(sandbox, pattern=r"^def hel\w+\(", regex=True, exclude=["node_modules"]) == {
            ("src/main.py", 3),
            ("src/deep/er/util.py", 1),
        }

    def test_can_ignore_case_and_choose_files(self, sandbox: LocalToolserver) -> None:
        assert self.found(sandbox, pattern="HELLO", ignore_case=True, include=["README"]) == {("README", 1)}

    def test_searches_one_file_too(self, sandbox: LocalToolserver) -> None:
        assert self.found(sandbox, pattern="World", path="README") == {("README", 1)}

    def test_says_that_there_is_more(self, sandbox: LocalToolserver) -> None:
        result = sandbox.call("search", pattern="e", limit=1)

        assert len(result.data["matches"]) == 1
        assert "only the first 1" in result.output

    def test_says_that_there_is_nothing(self, sandbox: LocalToolserver) -> None:
        assert "no match" in sandbox.call("search", pattern="absent").output

    @pytest.mark.parametrize(
        "arguments", [{}, {"pattern": ""}, {"pattern": "(", "regex": True}, {"pattern": "x", "include": ["["]}]
    )
    def test_bad_arguments_are_malformed(self, sandbox: LocalToolserver, arguments: dict[str, Any]) -> None:
        assert sandbox.call("search", **arguments).outcome == OutcomeClass.MALFORMED

    def test_an_expensive_expression_does_not_hang(self, sandbox: LocalToolserver, workdir: Path) -> None:
        (workdir / "a").write_text("a" * 50_000 + "\n")

        assert self.found(sandbox, pattern="(a+)+b", regex=True, path="a") == set()
