"""What an environment adds to a sandbox: custom tools and set-up commands; and what it may not say."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.wire.messages import OutcomeClass
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import Launcher, LocalToolserver, Start

SCHEMA = {
    "type": "object",
    "properties": {
        "file": {"type": "string", "minLength": 1},
        "level": {"type": "integer", "minimum": 0, "maximum": 3},
        "kind": {"enum": ["fast", "full"]},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["file"],
    "additionalProperties": False,
}
# Says what it was given; some files make it misbehave.
LINT = """
import json, sys, time
text = sys.stdin.read()
arguments = json.loads(text)
print("noise", file=sys.stderr)
if arguments["file"] == "bad":
    print("found 3 problems")
    sys.exit(2)
if arguments["file"] == "slow":
    time.sleep(1000)
print(text)
"""


VIOLATIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a missing argument": ({}, "file"),
    "a wrong type": ({"file": 3}, "file"),
    "an empty text": ({"file": ""}, "file"),
    "a number out of range": ({"file": "x", "level": 9}, "level"),
    "a number with a fraction": ({"file": "x", "level": 1.5}, "level"),
    "a value that is no choice": ({"file": "x", "kind": "slow"}, "kind"),
    "too many items": ({"file": "x", "tags": ["a", "b", "c"]}, "tags"),
    "an item of the wrong type": ({"file": "x", "tags": [1]}, "tags[0]"),
    "an unknown argument": ({"file": "x", "fix": True}, "fix"),
}


class TestCustomTools:
    @pytest.fixture
    def sandbox(self, start: Start, workdir: Path) -> LocalToolserver:
        (workdir / "lint.py").write_text(LINT)
        lint = {
            "name": "lint",
            "description": "Lint a file.",
            "command": [sys.executable, "lint.py"],
            "parameters": SCHEMA,
            "timeout_ms": 1000,
        }
        missing = {"name": "missing", "description": "", "command": ["/no/such/program"]}
        return start(tools=["shell"], custom_tools=[lint, missing])

    def test_are_offered_with_their_schema(self, sandbox: LocalToolserver) -> None:
        offered = {tool.name: tool for tool in sandbox.tools().tools}

        assert set(offered) == {"shell", "lint", "missing"}
        assert offered["lint"].description == "Lint a file."
        assert offered["lint"].parameters == SCHEMA

    def test_get_their_arguments_as_json(self, sandbox: LocalToolserver) -> None:
        result = sandbox.call("lint", level=2, file="grüße", tags=["a"])

        assert result.outcome == OutcomeClass.OK
        assert json.loads(result.output) == {"file": "grüße", "level": 2, "tags": ["a"]}

    def test_show_their_errors_only_when_they_fail(self, sandbox: LocalToolserver) -> None:
        assert "noise" not in sandbox.call("lint", file="good").output

        failed = sandbox.call("lint", file="bad")
        assert (failed.outcome, failed.facts.exit_code) == (OutcomeClass.FAILED, 2)
        assert failed.output == "found 3 problems\nnoise\n[exit code 2]"

    def test_have_a_time_limit_of_their_own(self, sandbox: LocalToolserver) -> None:
        result = sandbox.call("lint", file="slow")

        assert result.outcome == OutcomeClass.TIMED_OUT
        assert result.output.endswith("[timed out after 1000 ms]")

    def test_that_are_not_in_the_image_say_so(self, sandbox: LocalToolserver) -> None:
        result = sandbox.call("missing")

        assert result.outcome == OutcomeClass.FAILED
        assert "/no/such/program" in result.output

    @pytest.mark.parametrize(("arguments", "named"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
    def test_do_not_run_with(self, sandbox: LocalToolserver, arguments: dict[str, Any], named: str) -> None:
        result = sandbox.call("lint", **arguments)

        assert result.outcome == OutcomeClass.MALFORMED
        assert f'"{named}"' in result.output
        assert "kind" in result.output

    def test_run_once_for_each_call(self, start: Start, workdir: Path) -> None:
        sandbox = start(custom_tools=[{"name": "count", "command": ["/bin/sh", "-c", "echo x >> counted"]}])

        first = sandbox.post("count", call_id="a")
        again = sandbox.post("count", call_id="a")

        assert (again.body, again.replayed) == (first.body, True)
        assert (workdir / "counted").read_text() == "x\n"


class TestSetup:
    def test_runs_in_order_before_the_sandbox_is_ready(self, start: Start, workdir: Path) -> None:
        sandbox = start(setup=["echo one > steps", "until [ -e go ]; do sleep 0.01; done", "echo two >> steps"])
        until((workdir / "steps").exists)

        assert not sandbox.ready()
        assert sandbox.request("GET", "/healthz").status == 200
        assert sandbox.post("shell", command="true").refusal == (503, "not_ready")
        assert sandbox.upload("x", b"").refusal == (503, "not_ready")
        state = sandbox.state()
        assert (state.ready, state.setup.state, state.bound_to, state.journal.calls) == (False, "running", None, 0)

        (workdir / "go").touch()
        until(sandbox.ready)
        assert sandbox.state().setup.state == "done"
        assert sandbox.shell("cat steps").output == "one\ntwo\n"

    def test_that_fails_leaves_the_sandbox_unready_and_its_output_readable(self, start: Start, workdir: Path) -> None:
        sandbox = start(setup=["echo what went wrong; exit 7", "touch second"])
        until(lambda: sandbox.state().setup.state == "failed")

        assert not sandbox.ready()
        assert "what went wrong" in sandbox.state().setup.output
        assert sandbox.post("shell", command="true").refusal == (503, "not_ready")
        assert not (workdir / "second").exists()

    def test_that_takes_too_long_fails(self, start: Start) -> None:
        sandbox = start(setup=["sleep 1000"], setup_timeout_ms=100)

        until(lambda: sandbox.state().setup.state == "failed")

    def test_that_is_none_is_said(self, sandbox: LocalToolserver) -> None:
        assert sandbox.state().setup.state == "none"

    def test_that_still_runs_is_ended_by_a_stop(self, start: Start, workdir: Path) -> None:
        sandbox = start(setup=["touch begun; exec sleep 1000"])
        until((workdir / "begun").exists)

        assert sandbox.stop() < 5


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "no identity": ({"ROLLCAGE_SANDBOX": ""}, "ROLLCAGE_SANDBOX"),
    "a bad identity": ({"ROLLCAGE_SANDBOX": "a b"}, "ROLLCAGE_SANDBOX"),
    "no key": ({"ROLLCAGE_KEYS": "{}"}, "ROLLCAGE_KEYS"),
    "a key that is none": ({"ROLLCAGE_KEYS": '{"k1": "AAAA"}'}, "ROLLCAGE_KEYS"),
    "keys that are no JSON": ({"ROLLCAGE_KEYS": "k1"}, "ROLLCAGE_KEYS"),
    "an unknown field": ({"ROLLCAGE_CONFIG": '{"workdirectory": "/"}'}, "workdirectory"),
    "an unknown order": ({"ROLLCAGE_CONFIG": '{"order": "random"}'}, "order"),
    "an unknown tool": ({"ROLLCAGE_CONFIG": '{"tools": ["bash"]}'}, "bash"),
    "a relative work directory": ({"ROLLCAGE_CONFIG": '{"workdir": "work"}'}, "workdir"),
    "a custom tool with a taken name": (
        {"ROLLCAGE_CONFIG": '{"custom_tools": [{"name": "shell", "command": ["x"]}]}'},
        "shell",
    ),
    "a custom tool without a command": ({"ROLLCAGE_CONFIG": '{"custom_tools": [{"name": "x"}]}'}, "command"),
    "a schema that cannot be enforced": (
        {"ROLLCAGE_CONFIG": '{"custom_tools": [{"name": "x", "command": ["x"], "parameters": {"type": "objekt"}}]}'},
        "parameters",
    ),
    "a limit out of range": ({"ROLLCAGE_CONFIG": '{"limits": {"output_bytes": 1}}'}, "output_bytes"),
    "an address that is none": ({"ROLLCAGE_LISTEN": "nowhere"}, "ROLLCAGE_LISTEN"),
    "a descriptor that is not open": ({"ROLLCAGE_LISTEN": "fd:99"}, "99"),
}


@pytest.mark.parametrize(("env", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_a_sandbox_does_not_start_with(launcher: Launcher, env: dict[str, str], named: str) -> None:
    (event,) = [json.loads(line) for line in launcher.refuse(**env).splitlines()]

    assert event["msg"] == "toolserver_failed"
    assert named in event["error"]
