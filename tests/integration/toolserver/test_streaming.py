"""Watching a call as server-sent events changes nothing about the call."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rollcage.wire.messages import OutcomeClass, Result
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from support.local_toolserver import LocalToolserver
    from support.toolserver import Event

# It prints, and goes on only when told: what was seen before was seen live.
GATED = "echo ran >> runs; echo first; until [ -e go ]; do sleep 0.01; done; echo second"


def output(events: Iterable[Event]) -> bytes:
    """Put the output events together."""
    pieces = (event.json() for event in events if event.name == "output")
    return b"".join(
        piece["text"].encode() if "text" in piece else base64.b64decode(piece["base64"]) for piece in pieces
    )


def test_output_comes_while_the_command_runs_and_the_result_at_the_end(sandbox: LocalToolserver, workdir: Path) -> None:
    with sandbox.stream("shell", call_id="a", command=GATED) as events:
        first = next(events)
        (workdir / "go").touch()
        rest = list(events)

    assert first.json()["text"] == "first\n"
    assert output(rest) == b"second\n"
    assert rest[-1].name == "result"
    assert Result.model_validate_json(rest[-1].data).output == "first\nsecond\n"


def test_the_result_is_to_the_byte_what_an_ordinary_call_answers(sandbox: LocalToolserver) -> None:
    with sandbox.stream("shell", call_id="a", command="echo x") as events:
        result = list(events)[-1]

    again = sandbox.post("shell", call_id="a", command="echo x")

    assert again.replayed
    assert again.body == result.data


def test_a_finished_call_streams_its_result_alone(sandbox: LocalToolserver) -> None:
    answer = sandbox.post("shell", call_id="a", command="echo x")

    with sandbox.stream("shell", call_id="a", command="echo x") as events:
        seen = list(events)

    assert [(event.name, event.data) for event in seen] == [("result", answer.body)]


def test_streams_keep_their_names(sandbox: LocalToolserver) -> None:
    with sandbox.stream("shell", command="echo o; echo e >&2", streams="separate") as events:
        pieces = [event.json() for event in events if event.name == "output"]

    assert {(piece["stream"], piece["text"]) for piece in pieces} == {("stdout", "o\n"), ("stderr", "e\n")}


def test_bytes_that_are_no_text_arrive_as_they_are(sandbox: LocalToolserver) -> None:
    with sandbox.stream("shell", command="printf 'a\\377\\376\\000b'") as events:
        assert output(events) == b"a\xff\xfe\x00b"


def test_output_that_the_result_leaves_out_is_streamed_whole_or_its_gap_is_told(sandbox: LocalToolserver) -> None:
    size = 3_000_000
    with sandbox.stream("shell", command=f"head -c {size} /dev/zero | tr '\\0' x") as events:
        seen = list(events)

    missing = sum(event.json()["bytes"] for event in seen if event.name == "gap")
    result = Result.model_validate_json(seen[-1].data)
    assert len(output(seen)) + missing == size
    assert result.facts.truncated
    assert result.facts.output_bytes == size


def test_a_call_goes_on_when_its_watcher_goes_and_its_result_can_be_asked_for(
    sandbox: LocalToolserver, workdir: Path
) -> None:
    with sandbox.stream("shell", call_id="a", command=GATED) as events:
        assert next(events).json()["text"] == "first\n"

    assert sandbox.earlier("a").status == 202
    (workdir / "go").touch()
    answer = sandbox.earlier("a", wait_ms=30_000)

    assert answer.result().output == "first\nsecond\n"
    assert (workdir / "runs").read_text() == "ran\n"


def test_a_watcher_may_join_a_call_that_runs(sandbox: LocalToolserver, workdir: Path) -> None:
    with ThreadPoolExecutor() as pool:
        caller = pool.submit(sandbox.post, "shell", call_id="a", command=GATED)
        until((workdir / "runs").exists)
        with sandbox.stream("shell", call_id="a", command=GATED) as events:
            (workdir / "go").touch()
            seen = list(events)

        assert seen[-1].data == caller.result(timeout=30).body

    missing = sum(event.json()["bytes"] for event in seen if event.name == "gap")
    assert len(output(seen)) + missing == len(b"first\nsecond\n")
    assert (workdir / "runs").read_text() == "ran\n"


def test_a_stream_of_a_malformed_call_is_its_result(sandbox: LocalToolserver) -> None:
    with sandbox.stream("shell") as events:
        (only,) = list(events)

    assert Result.model_validate_json(only.data).outcome == OutcomeClass.MALFORMED


def test_a_conflict_is_refused_before_the_stream_begins(sandbox: LocalToolserver) -> None:
    sandbox.post("shell", call_id="a", command="true")

    answer = sandbox.request("POST", "/v1/calls/stream", sandbox.body("shell", "a", {"command": "false"}))

    assert answer.refusal == (409, "call_conflict")
