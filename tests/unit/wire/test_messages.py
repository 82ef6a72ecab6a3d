import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from rollcage.wire.messages import Call, ErrorCode, OutcomeClass, Refusal, Result, State

RESULT = {
    "call_id": "call_1",
    "tool": "shell",
    "class": "ok",
    "output": "a\nb\n",
    "data": {},
    "facts": {
        "boot_id": "b",
        "exit_code": 0,
        "signal": "",
        "timed_out": False,
        "truncated": False,
        "output_bytes": 4,
        "duration_ms": 3,
        "peak_memory_bytes": 3145728,
        "oom_kills": 0,
        "pressure": {"source": "psi", "stalled_ms": 0},
    },
}


def test_a_result_reads_as_documented() -> None:
    result = Result.model_validate_json(json.dumps(RESULT))

    assert result.outcome is OutcomeClass.OK
    assert result.facts.pressure.source == "psi"


def test_a_result_without_an_exit_code_is_a_result() -> None:
    facts = RESULT["facts"]
    assert isinstance(facts, dict)
    result = Result.model_validate(RESULT | {"facts": facts | {"exit_code": None}})
    assert result.facts.exit_code is None


def test_a_result_from_a_newer_toolserver_is_read() -> None:
    assert Result.model_validate(RESULT | {"novelty": 1}).call_id == "call_1"


def test_a_result_of_an_unknown_class_is_refused_rather_than_guessed() -> None:
    with pytest.raises(ValidationError):
        Result.model_validate(RESULT | {"class": "splendid"})


@pytest.mark.parametrize("call_id", ["", "a b", "a\n", "../x", "x" * 201, "h\u00e9"])
def test_a_call_id_outside_the_pattern_is_refused(call_id: str) -> None:
    with pytest.raises(ValidationError):
        Call(call_id=call_id, tool="shell")


def test_a_state_from_before_there_were_seals_is_not_sealed() -> None:
    counters = dict.fromkeys(
        ["replays", "conflicts", "misroutes_refused", "busy", "internal_errors", "connections_refused"], 0
    )
    state = State.model_validate(
        {
            "sandbox": "sbx-1",
            "boot_id": "b",
            "bound_to": None,
            "ready": True,
            "setup": {"state": "none", "output": ""},
            "journal": {"calls": 0, "results_bytes": 0},
            "counters": {"calls": {}, "auth_failures": {}, **counters},
            "started_at": "2026-01-01T00:00:00Z",
            "uptime_ms": 0,
        }
    )
    assert not state.sealed


def test_a_call_without_arguments_has_empty_ones() -> None:
    assert Call(call_id="call_1", tool="list").model_dump() == {
        "call_id": "call_1",
        "tool": "list",
        "arguments": {},
    }


def test_a_refusal_with_an_unknown_code_is_still_read() -> None:
    assert Refusal.model_validate({"code": "novelty", "message": "m"}).code == "novelty"


def test_only_three_errors_leave_it_open_whether_the_call_ran() -> None:
    assert {code for code in ErrorCode if code.may_have_run} == {"internal", "interrupted", "result_dropped"}


def test_the_error_codes_are_those_of_the_contract() -> None:
    contract = (Path(__file__).parents[3] / "docs" / "toolserver.md").read_text()
    table = contract.split("### Errors")[1].split("\n\n")[2]
    assert set(re.findall(r"`(\w+)`", table)) == {str(code) for code in ErrorCode}
