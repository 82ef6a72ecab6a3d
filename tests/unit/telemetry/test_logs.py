"""Logs are single lines that say what they are about and keep secrets."""

from __future__ import annotations

import io
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from rollcage.telemetry.logs import HIDDEN, Format, about, configure, redact, redacted

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = "rc_4fJ2nq8sVbQx7Lw0ZtYpHcRk"  # noqa: S105 - made up


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure(stream=stream)
    yield stream
    structlog.reset_defaults()
    root.handlers, root.level = before


def written(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_with_its_fields_whatever_they_contain(lines: io.StringIO) -> None:
    structlog.get_logger().info("call_refused", reason='a\n{"event":"forged"}')
    (event,) = written(lines)
    assert (event["event"], event["level"], event["reason"]) == ("call_refused", "info", 'a\n{"event":"forged"}')


def test_what_is_bound_around_the_work_goes_along_and_ends_with_it(lines: io.StringIO) -> None:
    log = structlog.get_logger()
    with about(rollout="r1", call="c1"):
        log.info("inside")
    log.info("outside")
    inside, outside = written(lines)
    assert (inside["rollout"], inside["call"]) == ("r1", "c1")
    assert "rollout" not in outside


def test_what_libraries_log_goes_the_same_way_and_is_redacted_too(lines: io.StringIO) -> None:
    logging.getLogger("uvicorn.error").warning("GET /agent-rft/tokens/%s/tools", TOKEN)
    (event,) = written(lines)
    assert TOKEN not in json.dumps(event)


def test_fields_given_the_standard_way_are_fields_too(lines: io.StringIO) -> None:
    logging.getLogger("rollcage.sandboxes").warning("isolation_found", extra={"tier": "bubblewrap", "token": TOKEN})
    (event,) = written(lines)
    assert (event["tier"], event["token"]) == ("bubblewrap", HIDDEN)


def test_an_exception_is_redacted_and_stays_on_its_line(lines: io.StringIO) -> None:
    structlog.get_logger().error("call_broke", exc_info=ValueError(f"Authorization: Bearer {TOKEN}"))
    (event,) = written(lines)
    assert "ValueError" in event["exception"]
    assert TOKEN not in json.dumps(event)


def test_the_console_shows_the_same_for_people() -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure(Format.CONSOLE, stream=stream)
    try:
        structlog.get_logger().info("sandbox_lost", sandbox="s1")
    finally:
        structlog.reset_defaults()
        root.handlers, root.level = before
    assert "sandbox_lost" in stream.getvalue()
    assert "sandbox=s1" in stream.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        f"/agent-rft/tokens/{TOKEN}/tools/shell",
        f"https://x/agent-rft/tokens/{TOKEN}?a=b",
        f"authorization: Bearer {TOKEN}",
        f"Rollcage {TOKEN}.{TOKEN}",
        f"redis://user:{TOKEN}@host:6379",
    ],
)
def test_a_secret_in_a_text_is_hidden(text: str) -> None:
    assert TOKEN not in redact(text)
    assert HIDDEN in redact(text)


def test_a_field_named_like_a_secret_is_hidden_however_deep_it_lies() -> None:
    event = redacted(None, "info", {"event": "x", "headers": [{"Authorization": TOKEN}], "body": {"token": b"abc"}})
    assert event == {"event": "x", "headers": [{"Authorization": HIDDEN}], "body": {"token": HIDDEN}}


def test_an_innocent_text_is_left_alone() -> None:
    assert redact("GET /v1/rollouts/r1 took 3 ms: no bearer") == "GET /v1/rollouts/r1 took 3 ms: no bearer"
