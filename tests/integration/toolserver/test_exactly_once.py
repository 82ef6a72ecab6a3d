"""A call runs at most once, whoever repeats it, hangs up or comes back."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.wire.messages import OutcomeClass
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import LocalToolserver, Start
    from support.toolserver import Answer

# Says that it runs, waits until it may end, and leaves one line each time it is run.
GATED = "echo ran >> runs; until [ -e go ]; do sleep 0.01; done; echo $$"


class Gate:
    """Lets GATED end, and counts how often it began."""

    def __init__(self, workdir: Path) -> None:
        self.workdir = workdir

    def runs(self) -> int:
        runs = self.workdir / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0

    def until_running(self) -> None:
        until(lambda: self.runs() > 0)

    def open(self) -> None:
        (self.workdir / "go").touch()


@pytest.fixture
def gate(workdir: Path) -> Gate:
    return Gate(workdir)


def test_a_repeat_gets_the_first_answer_to_the_byte_and_runs_nothing(sandbox: LocalToolserver, gate: Gate) -> None:
    gate.open()

    first = sandbox.post("shell", call_id="a", command=GATED)
    again = sandbox.post("shell", call_id="a", command=GATED)

    assert first.result().outcome == OutcomeClass.OK
    assert (again.status, again.body) == (first.status, first.body)
    assert (first.replayed, again.replayed) == (False, True)
    assert gate.runs() == 1


def test_a_new_id_runs_it_again(sandbox: LocalToolserver, gate: Gate) -> None:
    gate.open()

    sandbox.post("shell", call_id="a", command=GATED)
    sandbox.post("shell", call_id="b", command=GATED)

    assert gate.runs() == 2


@pytest.mark.parametrize("command", ["echo no; exit 9", "kill -9 $$", "sleep 100"])
def test_failures_are_repeated_too(sandbox: LocalToolserver, command: str) -> None:
    first = sandbox.post("shell", call_id="a", command=command, timeout_ms=200)
    again = sandbox.post("shell", call_id="a", command=command, timeout_ms=200)

    assert first.result().outcome != OutcomeClass.OK
    assert again.body == first.body


def test_a_malformed_call_is_repeated_too(sandbox: LocalToolserver) -> None:
    first = sandbox.post("shell", call_id="a", cmd="ls")
    again = sandbox.post("shell", call_id="a", cmd="ls")

    assert again.body == first.body
    assert again.replayed


def test_a_repeat_while_the_call_runs_waits_for_it(sandbox: LocalToolserver, gate: Gate) -> None:
    with ThreadPoolExecutor() as pool:
        callers = [pool.submit(sandbox.post, "shell", call_id="a", command=GATED) for _ in range(4)]
        gate.until_running()
        until(lambda: sandbox.state().counters.replays == 3)
        assert not any(caller.done() for caller in callers)
        gate.open()
        answers = [caller.result(timeout=30) for caller in callers]

    assert len({answer.body for answer in answers}) == 1
    assert sorted(answer.replayed for answer in answers) == [False, True, True, True]
    assert gate.runs() == 1


CONFLICTS: dict[str, tuple[str, dict[str, Any]]] = {
    "another argument": ("shell", {"command": "echo b"}),
    "one argument more": ("shell", {"command": "echo a", "env": {}}),
    "another tool": ("write_file", {"command": "echo a"}),
    "arguments that are malformed": ("shell", {}),
}


@pytest.mark.parametrize(("tool", "arguments"), CONFLICTS.values(), ids=CONFLICTS.keys())
def test_the_same_id_for_something_else_is_a_conflict(
    sandbox: LocalToolserver, tool: str, arguments: dict[str, Any]
) -> None:
    first = sandbox.post("shell", call_id="a", command="echo a")

    assert sandbox.post(tool, call_id="a", **arguments).refusal == (409, "call_conflict")
    assert sandbox.post("shell", call_id="a", command="echo a").body == first.body
    assert sandbox.state().counters.conflicts == 1


@pytest.mark.parametrize(
    "spelling",
    [
        '{"tool":"shell","arguments":{"env":{"A":"1","B":"2"},"command":"echo a"},"call_id":"a"}',
        '{ "call_id": "a",\n "tool": "shell", "arguments": {"command": "echo \\u0061", "env": {"B": "2", "A": "1"}} }',
    ],
    ids=["fields in another order", "white space and escapes"],
)
def test_another_spelling_of_the_same_call_is_a_repeat(sandbox: LocalToolserver, spelling: str) -> None:
    first = sandbox.post("shell", call_id="a", command="echo a", env={"A": "1", "B": "2"})

    again = sandbox.request("POST", "/v1/calls", spelling.encode())

    assert (again.status, again.body) == (200, first.body)


def test_the_result_can_be_asked_for_by_id(sandbox: LocalToolserver) -> None:
    answer = sandbox.post("shell", call_id="a:1.b_c-d", command="echo x")

    asked = sandbox.earlier("a:1.b_c-d")

    assert (asked.status, asked.body, asked.replayed) == (200, answer.body, True)


def test_asking_for_a_running_call_waits_as_long_as_it_is_told(sandbox: LocalToolserver, gate: Gate) -> None:
    with ThreadPoolExecutor() as pool:
        caller = pool.submit(sandbox.post, "shell", call_id="a", command=GATED)
        gate.until_running()
        assert sandbox.earlier("a").status == 202
        assert sandbox.earlier("a", wait_ms=100).status == 202
        asker = pool.submit(sandbox.earlier, "a", wait_ms=30_000)
        gate.open()

        assert asker.result(timeout=30).body == caller.result(timeout=30).body


def test_a_call_that_was_never_made_is_unknown(sandbox: LocalToolserver) -> None:
    assert sandbox.earlier("never").refusal == (404, "unknown_call")


@pytest.mark.parametrize("target", ["/v1/calls/a%0Ab", "/v1/calls/a%2Fb", "/v1/calls/", "/v1/calls/a?wait_ms=-1"])
def test_a_bad_question_is_refused(sandbox: LocalToolserver, target: str) -> None:
    assert sandbox.get(target).refusal == (400, "bad_request")


def test_a_call_goes_on_when_its_client_hangs_up_and_the_retry_gets_its_result(
    sandbox: LocalToolserver, gate: Gate
) -> None:
    body = sandbox.body("shell", "a", {"command": GATED})
    head = sandbox.head("POST /v1/calls", f"Content-Length: {len(body)}")
    with sandbox.dial() as connection:
        connection.sendall(head + body)
        gate.until_running()

    with ThreadPoolExecutor() as pool:
        retry = pool.submit(sandbox.post, "shell", call_id="a", command=GATED)
        until(lambda: sandbox.state().counters.replays == 1)
        gate.open()
        answer = retry.result(timeout=30)

    assert answer.result().outcome == OutcomeClass.OK
    assert answer.replayed
    assert gate.runs() == 1


def test_half_a_request_runs_nothing_and_leaves_no_trace(sandbox: LocalToolserver, gate: Gate) -> None:
    gate.open()
    body = sandbox.body("shell", "a", {"command": GATED})
    head = sandbox.head("POST /v1/calls", f"Content-Length: {len(body)}")
    with sandbox.dial() as connection:
        connection.sendall(head + body[:-1])

    assert sandbox.state().bound_to is None
    assert sandbox.post("shell", call_id="a", command=GATED).replayed is False
    assert gate.runs() == 1


def test_dropped_results_are_never_run_again(start: Start, gate: Gate) -> None:
    """The journal holds 16 MiB of results; half-megabyte ones push the first one out."""
    sandbox = start(limits={"output_bytes": 512 << 10})
    gate.open()
    sandbox.shell(GATED, call_id="first")

    def fill(number: int) -> Answer:
        return sandbox.post("shell", call_id=f"fill_{number}", command="head -c 600000 /dev/zero | tr '\\0' x")

    with ThreadPoolExecutor(4) as pool:
        assert all(answer.status == 200 for answer in pool.map(fill, range(40)))

    assert sandbox.post("shell", call_id="first", command=GATED).refusal == (410, "result_dropped")
    assert sandbox.earlier("first").refusal == (410, "result_dropped")
    assert sandbox.post("shell", call_id="first", command="other").refusal == (409, "call_conflict")
    assert gate.runs() == 1
    assert sandbox.state().journal.calls == 41
    assert sandbox.state().journal.results_bytes <= 16 << 20


def test_the_journal_and_the_counters_can_be_read(sandbox: LocalToolserver) -> None:
    sandbox.shell("true")
    sandbox.shell("false")
    sandbox.shell("sleep 9", timeout_ms=50)
    sandbox.call("no_such_tool")
    last = sandbox.post("shell", call_id="x", command="true")
    sandbox.post("shell", call_id="x", command="true")

    state = sandbox.state()

    assert state.counters.calls == {"ok": 2, "failed": 1, "timed_out": 1, "malformed": 1}
    assert (state.counters.replays, state.counters.conflicts) == (1, 0)
    assert state.journal.calls == 5
    assert state.journal.results_bytes > len(last.body)


BAD_CALLS = {
    "not JSON": b"hello",
    "a list": b"[]",
    "nothing": b"",
    "no id": b'{"tool":"shell"}',
    "an empty id": b'{"call_id":"","tool":"shell"}',
    "an id that climbs": b'{"call_id":"../x","tool":"shell"}',
    "an id with a line break": b'{"call_id":"a\\nb","tool":"shell"}',
    "an id of 201 characters": json.dumps({"call_id": "x" * 201, "tool": "shell"}).encode(),
    "no tool": b'{"call_id":"a"}',
    "a number as tool": b'{"call_id":"a","tool":1}',
    "an unknown field": b'{"call_id":"a","tool":"shell","rollout":"x"}',
    "a field twice": b'{"call_id":"a","call_id":"b","tool":"shell"}',
    "text after it": b'{"call_id":"a","tool":"shell"}{}',
    "invalid UTF-8": b'{"call_id":"a","tool":"\xff"}',
}


@pytest.mark.parametrize("body", BAD_CALLS.values(), ids=BAD_CALLS.keys())
def test_what_is_not_a_call_is_refused_and_changes_nothing(sandbox: LocalToolserver, body: bytes) -> None:
    assert sandbox.request("POST", "/v1/calls", body).refusal == (400, "bad_request")

    state = sandbox.state()
    assert (state.bound_to, state.journal.calls) == (None, 0)


ODD_ARGUMENTS = {
    "a list": "[]",
    "null": "null",
    "a text": '"ls"',
    "a name twice": '{"command":"true","command":"false"}',
    "deep nesting": '{"command":' + "[" * 5000 + "]" * 5000 + "}",
    "a huge number": '{"command":"true","timeout_ms":1' + "0" * 400 + "}",
}


@pytest.mark.parametrize("arguments", ODD_ARGUMENTS.values(), ids=ODD_ARGUMENTS.keys())
def test_odd_arguments_are_told_to_the_model_and_not_to_the_gateway(sandbox: LocalToolserver, arguments: str) -> None:
    body = f'{{"call_id":"a","tool":"shell","arguments":{arguments}}}'.encode()

    result = sandbox.request("POST", "/v1/calls", body).result()

    assert result.outcome == OutcomeClass.MALFORMED
    assert "command" in result.output
