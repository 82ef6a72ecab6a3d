"""After the seal nothing in a sandbox changes any more, and what it is can still be read."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import OutcomeClass, Sealed
from support.local_toolserver import alive
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import LocalToolserver, Start

_numbers = itertools.count(1)

# Each writes all the time, and none of them is asked to end.
WRITER = "while :; do date +%N > written; done"
WRITERS = {
    "in the background": f"({WRITER}) &",
    "in a session of its own": f"setsid nohup sh -c '{WRITER}' WORD > /dev/null 2>&1 &",
    "ignoring every request to end": f"setsid sh -c 'trap \"\" TERM INT HUP; {WRITER}' WORD &",
    "forked twice": f"(setsid sh -c '(sh -c \"{WRITER}\" WORD &) ; exit' &)",
    "with a mark that it changed": f"setsid bash -c 'ulimit -S -R unlimited; {WRITER}' WORD &",
}


@pytest.fixture
def word() -> str:
    """A name that no other process of this machine has."""
    return f"sealed-{os.getpid()}-{next(_numbers)}"


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS.keys())
def test_no_process_of_the_model_outlives_the_seal(
    sandbox: LocalToolserver, workdir: Path, writer: str, word: str
) -> None:
    sandbox.call("session_create", session="s")
    sandbox.call("session_run", session="s", command=writer.replace("WORD", word))
    until((workdir / "written").exists)

    assert Sealed.model_validate_json(sandbox.seal().body).left == 0

    assert alive(word) == []
    frozen = (workdir / "written").stat().st_mtime_ns
    # A whole request and its answer are longer than the writer ever paused.
    sandbox.download_tree(".")
    assert (workdir / "written").stat().st_mtime_ns == frozen


def test_a_call_after_the_seal_is_refused_and_runs_nothing(sandbox: LocalToolserver, workdir: Path) -> None:
    sandbox.call("session_create", session="s")
    sandbox.seal()

    assert sandbox.post("shell", command="touch ran").refusal == (410, "sealed")
    assert sandbox.post("session_run", session="s", command="touch ran").refusal == (410, "sealed")
    assert sandbox.post("write_file", path="ran", content="x").refusal == (410, "sealed")
    assert sandbox.upload("ran", b"x").refusal == (410, "sealed")
    assert sandbox.upload_tree(".", bytes(1024)).refusal == (410, "sealed")
    assert list(workdir.iterdir()) == []


def test_a_repeat_of_an_earlier_call_still_gets_its_result(sandbox: LocalToolserver) -> None:
    first = sandbox.post("shell", call_id="a", command="date +%N")
    sandbox.seal()

    again = sandbox.post("shell", call_id="a", command="date +%N")

    assert (again.status, again.body, again.replayed) == (200, first.body, True)
    assert sandbox.earlier("a").body == first.body


def test_sealing_again_changes_nothing(sandbox: LocalToolserver) -> None:
    sandbox.shell("true")

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: sandbox.seal(), range(4)))

    assert {(answer.status, answer.body) for answer in [*answers, sandbox.seal()]} == {
        (200, b'{"left":0,"sealed":true}')
    }


def test_another_rollout_cannot_seal(sandbox: LocalToolserver) -> None:
    sandbox.shell("true")

    assert sandbox.of("trace_other").seal().refusal == (409, "bound_elsewhere")
    assert sandbox.shell("echo on").output == "on\n"
    assert not sandbox.state().sealed


def test_files_and_trees_can_still_be_read(sandbox: LocalToolserver) -> None:
    sandbox.shell("mkdir d; echo content > d/file")
    sandbox.seal()

    assert sandbox.download("d/file").body == b"content\n"
    assert sandbox.download_tree("d").getnames() == ["file"]
    assert sandbox.state().sealed


def test_a_running_call_may_end_first_and_is_there_as_a_whole(sandbox: LocalToolserver, workdir: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        running = pool.submit(
            sandbox.shell, "touch begun; while ! [ -e go ]; do sleep 0.01; done; echo whole > end", call_id="a"
        )
        until((workdir / "begun").exists)
        sealing = pool.submit(sandbox.seal, wait_ms=60_000)
        until(lambda: sandbox.post("shell", command="true").status == 410)
        (workdir / "go").touch()

        assert sealing.result().status == 200
        assert running.result().outcome == OutcomeClass.OK

    assert sandbox.download("end").body == b"whole\n"


@pytest.mark.parametrize("tool", ["shell", "session_run"])
def test_a_call_that_goes_on_for_too_long_is_ended_and_has_a_result(
    sandbox: LocalToolserver, workdir: Path, tool: str
) -> None:
    where = {"session": "s"} if tool == "session_run" else {}
    if where:
        sandbox.call("session_create", **where)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(
            sandbox.post, tool, call_id="a", command="echo so far; touch begun; sleep 1000; touch late", **where
        )
        until((workdir / "begun").exists)

        sandbox.seal(wait_ms=50)

        answer = running.result()
    result = answer.result()
    assert result.outcome == OutcomeClass.TIMED_OUT
    assert result.output == "so far\n[stopped: the sandbox takes no more calls]"
    assert sandbox.earlier("a").body == answer.body
    assert not (workdir / "late").exists()


def test_a_call_that_waits_for_its_turn_never_runs(start: Start, workdir: Path) -> None:
    sandbox = start(order="serial")
    until(sandbox.ready)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(sandbox.post, "shell", call_id="a", command="touch begun; sleep 1000")
        until((workdir / "begun").exists)
        second = pool.submit(sandbox.post, "shell", call_id="b", command="touch ran")
        until(lambda: sandbox.state().journal.calls == 2)

        sandbox.seal()

        assert first.result().status == 200
        assert second.result().refusal == (410, "sealed")
    assert not (workdir / "ran").exists()


def test_an_unsealed_neighbour_goes_on(start: Start) -> None:
    sealed, other = start(), start()
    until(sealed.ready)
    until(other.ready)
    other.call("session_create", session="s")
    other.call("session_run", session="s", command="sleep 1000 &")

    sealed.seal()

    assert other.call("session_run", session="s", command="jobs -r | wc -l").output.strip() == "1"
