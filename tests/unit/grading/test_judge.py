"""A judge behind HTTP: its score, or a refusal; never a zero because it was away."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.grading import Refused
from support.graders import context, score, step

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Judge:
    """Gives prepared answers, one after the other, the last one for ever."""

    url: str
    asked: list[tuple[dict[str, str], Any]] = field(default_factory=list)


@contextmanager
def judging(*answers: tuple[int, bytes]) -> Iterator[Judge]:
    left = list(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            judge.asked.append((dict(self.headers), json.loads(body)))
            status, content = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    judge = Judge(f"http://127.0.0.1:{server.server_port}/score")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield judge
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def grader(judge: Judge, **fields: Any) -> dict[str, Any]:
    return {"kind": "judge", "url": judge.url, "tries": 2, **fields}


def test_a_judge_sees_answer_item_and_calls_and_says_why() -> None:
    with judging((200, b'{"score": 0.75, "reason": "sound"}')) as judge:
        found = score(grader(judge), context("x", {"id": 1}, trajectory=(step(output="seen"),)))
    assert (found.value, found.notes) == (0.75, ("sound",))
    ((_, asked),) = judge.asked
    assert asked["sample"]["output_text"] == "x"
    assert asked["item"] == {"id": 1}
    assert asked["trajectory"][0]["output"] == "seen"


def test_a_judge_that_stumbles_once_is_asked_again() -> None:
    with judging((503, b""), (200, b'{"result": {"grade": 1}}')) as judge:
        assert score(grader(judge, field="result.grade"), context()).value == 1.0


def test_a_secret_header_comes_from_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_TOKEN", "Bearer x")
    with judging((200, b'{"score": 1}')) as judge:
        score(grader(judge, headers={"x-token": "GRADER_TOKEN"}), context())
    assert judge.asked[0][0]["x-token"] == "Bearer x"


@pytest.mark.parametrize(
    ("status", "body", "asked"),
    [
        (503, b"", 2),
        (429, b"", 2),
        (401, b"", 1),
        (302, b"", 1),
        (200, b"fine", 1),
        (200, b"{}", 1),
        (200, b'{"score": "1"}', 1),
        (200, b'{"score": true}', 1),
        (200, b'{"score": null}', 1),
        (200, b'{"score": NaN}', 1),
        (200, b'{"score": 1e999}', 1),
        (200, b"[" * 100_000, 1),
        (200, b" " * (2 << 20), 1),
    ],
    ids=[
        *("away", "busy", "closed", "elsewhere", "no JSON", "no score", "a text", "a truth", "nothing", "no number"),
        *("infinity", "a nest", "too much"),
    ],
)
def test_a_judge_that_fails_is_a_refusal(status: int, body: bytes, asked: int) -> None:
    with judging((status, body)) as judge, pytest.raises(Refused):
        score(grader(judge), context())
    assert len(judge.asked) == asked


def test_a_judge_that_is_not_there_is_a_refusal() -> None:
    with judging((200, b"")) as judge:
        pass
    with pytest.raises(Refused, match="did not answer"):
        score(grader(judge), context())


def test_a_header_without_its_variable_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GRADER_TOKEN", raising=False)
    with judging((200, b'{"score": 1}')) as judge, pytest.raises(Refused, match="GRADER_TOKEN"):
        score(grader(judge, headers={"x-token": "GRADER_TOKEN"}), context())
    assert judge.asked == []
