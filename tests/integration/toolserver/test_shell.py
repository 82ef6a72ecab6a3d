"""The tool `shell`: what the model sees of its commands, and what the record keeps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.wire.messages import OutcomeClass

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import LocalToolserver, Start

WHAT_THE_MODEL_SEES: dict[str, tuple[dict[str, Any], OutcomeClass, str]] = {
    "what a command prints": ({"command": "echo hello"}, OutcomeClass.OK, "hello\n"),
    "nothing of a silent one": ({"command": "true"}, OutcomeClass.OK, ""),
    "both streams in order": ({"command": "echo a; echo b >&2; echo c"}, OutcomeClass.OK, "a\nb\nc\n"),
    "the exit code of a failed one": (
        {"command": "echo no; exit 3"},
        OutcomeClass.FAILED,
        "no\n[exit code 3]",
    ),
    "the signal that ended one": ({"command": "kill -TERM $$"}, OutcomeClass.FAILED, "[killed by signal SIGTERM]"),
    "the time limit that ended one": (
        {"command": "echo so far; exec sleep 100", "timeout_ms": 200},
        OutcomeClass.TIMED_OUT,
        "so far\n[timed out after 200 ms]",
    ),
    "an end of file on standard input": ({"command": "cat; echo end"}, OutcomeClass.OK, "end\n"),
    "its own variable": ({"command": "echo $WORD", "env": {"WORD": "x y"}}, OutcomeClass.OK, "x y\n"),
    "its own directory": ({"command": "pwd", "workdir": "/usr"}, OutcomeClass.OK, "/usr\n"),
    "a missing directory": (
        {"command": "true", "workdir": "/no/such"},
        OutcomeClass.FAILED,
        'cannot run in /no/such: no such file or directory; pass a workdir that exists, for example "/"',
    ),
    "a command with a NUL byte": (
        {"command": "a\0b"},
        OutcomeClass.FAILED,
        "a command cannot contain NUL bytes",
    ),
    "letters of any language": ({"command": "echo grüß 世界 🏎"}, OutcomeClass.OK, "grüß 世界 🏎\n"),
}


@pytest.mark.parametrize(
    ("arguments", "outcome", "output"), WHAT_THE_MODEL_SEES.values(), ids=WHAT_THE_MODEL_SEES.keys()
)
def test_the_model_sees(
    sandbox: LocalToolserver, arguments: dict[str, Any], outcome: OutcomeClass, output: str
) -> None:
    result = sandbox.call("shell", **arguments)

    assert (result.outcome, result.output) == (outcome, output)


def test_streams_can_be_told_apart(sandbox: LocalToolserver) -> None:
    result = sandbox.shell("echo out; echo err >&2", streams="separate")

    assert result.data == {"stdout": "out\n", "stderr": "err\n"}
    assert result.output == "out\n[stderr]\nerr\n"


def test_commands_run_in_the_work_directory(sandbox: LocalToolserver, workdir: Path) -> None:
    assert sandbox.shell("pwd").output == f"{workdir}\n"


def test_the_configured_environment_reaches_commands_and_our_own_does_not(start: Start) -> None:
    sandbox = start(env={"GREETING": "hi"})

    seen = sandbox.shell("env").output.splitlines()

    assert "GREETING=hi" in seen
    assert not [line for line in seen if "ROLLCAGE" in line]


def test_a_configured_shell_is_used(start: Start) -> None:
    sandbox = start(shell=[sys.executable, "-c"])  # noqa: S604 - a setting of the sandbox, not of a subprocess

    assert sandbox.shell("print(6 * 7)").output == "42\n"


def test_a_missing_shell_is_said_and_files_can_still_be_read(start: Start, workdir: Path) -> None:
    (workdir / "note").write_text("still here\n")
    sandbox = start(shell=["/no/such/shell", "-c"])  # noqa: S604 - a setting of the sandbox, not of a subprocess

    result = sandbox.shell("echo x")

    assert result.outcome == OutcomeClass.FAILED
    assert "there is no shell in this sandbox" in result.output
    assert sandbox.call("read_file", path="note").output == "still here\n"


def test_a_time_limit_is_clamped_to_the_configured_one(start: Start) -> None:
    sandbox = start(limits={"max_timeout_ms": 300})

    result = sandbox.shell("sleep 100", timeout_ms=3_600_000)

    assert result.outcome == OutcomeClass.TIMED_OUT
    assert 300 <= result.facts.duration_ms < 60_000


class TestFacts:
    def test_of_a_command_that_went_well(self, sandbox: LocalToolserver) -> None:
        result = sandbox.shell("printf 12345")

        facts = result.facts
        assert facts.boot_id == sandbox.state().boot_id
        assert (facts.exit_code, facts.signal, facts.timed_out) == (0, "", False)
        assert (facts.output_bytes, facts.truncated, facts.oom_kills) == (5, False, 0)
        assert 0 <= facts.duration_ms < 10_000
        assert facts.pressure.source in {"psi", "throttling", "none"}
        assert facts.pressure.stalled_ms >= 0

    def test_an_exit_code(self, sandbox: LocalToolserver) -> None:
        assert sandbox.shell("exit 42").facts.exit_code == 42

    def test_a_signal_has_no_exit_code(self, sandbox: LocalToolserver) -> None:
        facts = sandbox.shell("kill -KILL $$").facts

        assert (facts.exit_code, facts.signal) == (None, "SIGKILL")

    def test_a_time_limit(self, sandbox: LocalToolserver) -> None:
        facts = sandbox.shell("sleep 100", timeout_ms=150).facts

        assert facts.timed_out
        assert 150 <= facts.duration_ms < 10_000

    def test_the_peak_memory_of_the_command(self, sandbox: LocalToolserver) -> None:
        megabytes = 1 << 20
        code = f"x = b'x' * {100 * megabytes}"

        facts = sandbox.shell(f'exec {sys.executable} -c "{code}"').facts

        assert 100 * megabytes < facts.peak_memory_bytes < 300 * megabytes

    def test_a_call_that_ran_nothing_has_none(self, sandbox: LocalToolserver) -> None:
        facts = sandbox.call("shell").facts

        assert (facts.exit_code, facts.signal, facts.peak_memory_bytes) == (None, "", 0)


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "no command": ({}, '"command" is required'),
    "a number as command": ({"command": 7}, '"command" must be'),
    "an invented argument": ({"command": "true", "cmd": "x"}, '"cmd" is not an argument here'),
    "a time limit of zero": ({"command": "true", "timeout_ms": 0}, '"timeout_ms" must be'),
    "a time limit as text": ({"command": "true", "timeout_ms": "5"}, '"timeout_ms" must be'),
    "a list as environment": ({"command": "true", "env": ["A=1"]}, '"env" must be'),
    "streams that do not exist": ({"command": "true", "streams": "mixed"}, '"streams" must be'),
    "a variable with a bad name": ({"command": "true", "env": {"A=B": "1"}}, "env"),
}


@pytest.mark.parametrize(("arguments", "problem"), MALFORMED.values(), ids=MALFORMED.keys())
def test_bad_arguments_are_named_and_nothing_runs(
    sandbox: LocalToolserver, workdir: Path, arguments: dict[str, Any], problem: str
) -> None:
    if isinstance(arguments.get("command"), str):
        arguments = arguments | {"command": "touch ran"}

    result = sandbox.call("shell", **arguments)

    assert result.outcome == OutcomeClass.MALFORMED
    assert problem in result.output
    assert not (workdir / "ran").exists()


def test_a_malformed_call_tells_which_arguments_there_are(sandbox: LocalToolserver) -> None:
    output = sandbox.call("shell", cmd="ls").output

    for name in ("command", "timeout_ms", "workdir", "env", "streams"):
        assert name in output


def test_an_unknown_tool_is_told_which_tools_there_are(start: Start) -> None:
    sandbox = start(tools=["shell", "read_file"])

    result = sandbox.call("bash", command="ls")

    assert result.outcome == OutcomeClass.MALFORMED
    assert result.output == 'There is no tool "bash". The tools are: read_file, shell.'


def test_only_the_configured_tools_are_offered(start: Start) -> None:
    sandbox = start(tools=["shell", "read_file"])

    assert {tool.name for tool in sandbox.tools().tools} == {"shell", "read_file"}
    assert sandbox.call("write_file", path="x", content="").outcome == OutcomeClass.MALFORMED


def test_each_tool_is_offered_with_a_description_and_a_schema(sandbox: LocalToolserver) -> None:
    tools = sandbox.tools().tools

    assert {tool.name for tool in tools} == {
        "shell",
        "session_create",
        "session_run",
        "session_interrupt",
        "session_close",
        "read_file",
        "write_file",
        "list",
        "search",
    }
    for tool in tools:
        assert tool.description
        assert tool.parameters["type"] == "object"
        assert tool.parameters["additionalProperties"] is False
