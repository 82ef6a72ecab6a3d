"""How a toolserver's answers are read."""

import json

import pytest

from rollcage.core.verdict_facts import Came
from rollcage.rollouts.connection import Reply
from rollcage.rollouts.toolservers import read
from rollcage.wire.messages import ErrorCode

RESULT = {"call_id": "c", "tool": "shell", "class": "ok", "output": "x", "data": {}, "facts": {"boot_id": "b"}}

# Said of things other than calls.
NOT_OF_CALLS = {ErrorCode.NOT_FOUND, ErrorCode.METHOD_NOT_ALLOWED, ErrorCode.FILE_ERROR}


def reply(status: int, body: object) -> Reply:
    return Reply(status, body if isinstance(body, bytes) else json.dumps(body).encode(), "boot-1", replayed=False)


def test_a_result_is_a_result() -> None:
    heard = read(reply(200, RESULT))

    assert (heard.came, heard.fields, heard.boot) == (Came.RESULT, RESULT, "boot-1")


def test_a_call_that_runs_is_told_without_a_result() -> None:
    assert read(reply(202, b"")).came is Came.RUNNING


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"call_id": "c", "outp', id="half of it"),
        pytest.param(b"<html>", id="somebody else's page"),
        pytest.param([], id="another shape"),
        pytest.param({**RESULT, "output": None}, id="no output"),
        pytest.param({**RESULT, "class": "great"}, id="a class that nobody knows"),
        pytest.param({**RESULT, "facts": None}, id="no facts"),
        pytest.param({name: RESULT[name] for name in ("call_id", "class")}, id="fields missing"),
    ],
)
def test_an_answer_without_its_output_is_never_shown(body: object) -> None:
    assert read(reply(200, body)).came is Came.OUTPUT_LOST


@pytest.mark.parametrize("code", sorted(set(ErrorCode) - NOT_OF_CALLS))
def test_every_refusal_is_known_and_what_may_have_run_is_never_taken_for_untouched(code: ErrorCode) -> None:
    came = read(reply(500, {"code": code, "message": "m"})).came

    untold = {Came.FAULT, Came.INTERRUPTED, Came.ANSWER_LOST}
    assert (came in untold) == code.may_have_run


def test_a_refusal_of_a_later_release_may_have_run() -> None:
    assert read(reply(503, {"code": "tired", "message": "m"})).came is Came.FAULT


def test_an_error_page_of_a_proxy_may_have_run() -> None:
    assert read(reply(502, b"bad gateway")).came is Came.OUTPUT_LOST
