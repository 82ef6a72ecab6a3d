"""Attacks on the file tools: what is no file, what never ends, what changes under the eyes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import OutcomeClass
from support.sandboxes import assert_isolated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.sandboxes import Sandboxes, SandboxPod

PREPARE = """
mkfifo fifo
truncate -s 10T sparse
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('socket')"
ln -s loop loop
ln -s /proc/1/environ environ
mkdir cycle; ln -s .. cycle/up
ln -s / root
"""


@pytest.fixture(scope="module")
def prepared(sandboxes: Sandboxes) -> Iterator[SandboxPod]:
    """A sandbox full of traps for whoever reads it."""
    with sandboxes.start("prepared") as pod:
        assert_isolated(pod)
        assert pod.shell(PREPARE).outcome == OutcomeClass.OK
        yield pod


REFUSED = {
    "../../etc/shadow": "permission denied",
    "/etc/shadow": "permission denied",
    "/proc/1/environ": "permission denied|is in /proc",
    "/proc/self/environ": "permission denied|is in /proc",
    "/proc/self/mem": "permission denied|is in /proc",
    "environ": "permission denied|is in /proc",
    "root/proc/1/environ": "permission denied|is in /proc",
    "/dev/zero": "only regular files",
    "/dev/tty": "no such device|only regular files",
    "fifo": "a FIFO",
    "socket": "a socket",
    "sparse": "is binary",
    "loop": "too many levels",
}


@pytest.mark.parametrize(("path", "why"), REFUSED.items(), ids=REFUSED.keys())
def test_nothing_is_read_from(prepared: SandboxPod, path: str, why: str) -> None:
    began = time.monotonic()

    result = prepared.call("read_file", path=path)

    assert result.outcome == OutcomeClass.FAILED
    assert any(part in result.output for part in why.split("|")), result.output
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("path", [path for path in REFUSED if path != "sparse"])
def test_nothing_is_downloaded_from(prepared: SandboxPod, path: str) -> None:
    assert prepared.download(path).refusal == (422, "file_error")


def test_a_sparse_file_is_read_as_far_as_it_is_asked_for(prepared: SandboxPod) -> None:
    part = prepared.call("read_file", path="sparse", encoding="base64", offset=9 << 40, limit=3)

    assert part.output.startswith("AAAA")
    assert prepared.call("read_file", path="sparse", offset=10**12).outcome == OutcomeClass.FAILED
    assert prepared.peak_memory() < 64 << 20


@pytest.mark.parametrize("path", [".", "/", "/proc", "/sys"])
def test_searching_and_listing_ends(prepared: SandboxPod, path: str) -> None:
    """The sparse file makes the search give up; nothing makes it hang."""
    listed = prepared.call("list", path=path, depth=64)
    found = prepared.call("search", pattern="no such text anywhere", path=path, exclude=["sparse"])

    assert listed.outcome in {OutcomeClass.OK, OutcomeClass.TIMED_OUT}
    assert found.outcome in {OutcomeClass.OK, OutcomeClass.TIMED_OUT}
    assert prepared.shell("echo alive").output == "alive\n"


def test_a_link_that_flips_during_the_read_shows_only_what_the_model_may_read(sandbox: SandboxPod) -> None:
    flip = """
import os
targets = ["good", "/etc/shadow", "fifo", "/proc/1/environ", "/dev/zero"]
while True:
    for target in targets:
        os.symlink(target, "next")
        os.rename("next", "link")
"""
    sandbox.shell("echo good > good; mkfifo fifo; ln -s good link")
    sandbox.call("session_create", session="s", env={"CODE": flip})
    sandbox.call("session_run", session="s", command='python3 -c "$CODE" &')
    seen = set()

    for _ in range(200):
        result = sandbox.call("read_file", path="link")
        assert result.facts.duration_ms < 60_000
        seen.add(result.outcome)
        if result.outcome == OutcomeClass.OK:
            assert result.output == "good\n"

    assert seen == {OutcomeClass.OK, OutcomeClass.FAILED}


def test_writing_through_a_link_does_not_leave_the_model_s_reach(prepared: SandboxPod) -> None:
    for path in ("/etc/passwd", "root/etc/new", "/proc/1/comm", "/sys/x", "/opt/rollcage/toolserver"):
        assert prepared.call("write_file", path=path, content="x").outcome == OutcomeClass.FAILED
        assert prepared.upload(path, b"x").status in {404, 422}


def test_the_tree_of_everything_can_be_downloaded_and_skips_what_is_no_file(prepared: SandboxPod) -> None:
    prepared.shell("rm sparse; mkdir trap; mkfifo trap/fifo; echo x > trap/file; ln -s /etc/shadow trap/link")

    with prepared.download_tree("trap") as tree:
        members = {member.name.strip("/"): member for member in tree.getmembers()}

    assert members["file"].size == 2
    assert members["link"].issym()
