"""What the port takes and what it does not: sizes, times, shapes and connections."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import OutcomeClass
from support.waiting import until

if TYPE_CHECKING:
    from support.local_toolserver import LocalToolserver, Start

CALL_LIMIT = 4 << 20


def test_a_call_of_four_mebibytes_is_taken(sandbox: LocalToolserver) -> None:
    frame = len(sandbox.body("write_file", "a", {"path": "x", "content": ""}))

    result = sandbox.call("write_file", call_id="a", path="x", content="y" * (CALL_LIMIT - frame))

    assert result.outcome == OutcomeClass.OK


@pytest.mark.parametrize("size", [CALL_LIMIT + 1, 2 << 30, 1 << 62])
def test_a_larger_one_is_refused_unread(sandbox: LocalToolserver, size: int) -> None:
    answer = sandbox.raw(sandbox.head("POST /v1/calls", f"Content-Length: {size}"))

    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"code":"too_large"' in answer


def test_a_large_call_that_is_sent_anyway_gets_its_answer(sandbox: LocalToolserver) -> None:
    answer = sandbox.post("write_file", path="x", content="y" * (CALL_LIMIT + 1))

    assert answer.refusal == (413, "too_large")


def test_many_large_calls_leave_the_memory_flat(sandbox: LocalToolserver) -> None:
    for n in range(8):
        sandbox.call("write_file", path=f"x{n}", content="y" * (CALL_LIMIT - 1000))

    assert sandbox.peak_memory() < 100 << 20


@pytest.mark.parametrize(
    ("request_line", "headers"),
    [
        ("POST /v1/calls", ["Transfer-Encoding: chunked"]),
        ("POST /v1/calls", ["Content-Length: 2", "Content-Encoding: gzip"]),
        ("POST /v1/calls", ["Content-Length: 2", "Content-Length: 3"]),
        ("POST /v1/calls", ["Content-Length: -1"]),
        ("POST /v1/calls", ["Content-Length: 2", "Transfer-Encoding: gzip, chunked"]),
        ("GET /v1/state", ["Content-Length: 2"]),
        ("GET http://elsewhere/v1/state", []),
        ("GET //elsewhere/v1/state", []),
        ("GET /v1//state", []),
        ("GET /v1/state HTTP/9.9\r\nx: y", []),
    ],
    ids=[
        "a call without a length",
        "a compressed call",
        "two lengths",
        "a negative length",
        "an unknown transfer coding",
        "a question with a body",
        "a target on another host",
        "a target that begins with two slashes",
        "a target with an empty part",
        "an unknown version",
    ],
)
def test_an_odd_request_is_refused(sandbox: LocalToolserver, request_line: str, headers: list[str]) -> None:
    answer = sandbox.raw(sandbox.head(request_line, *headers, "Connection: close") + b"0\r\n\r\n")

    status = int(answer.split(b" ")[1])
    assert 400 <= status < 600
    assert sandbox.state().journal.calls == 0


def test_a_request_with_two_ways_to_find_its_end_has_one_meaning(sandbox: LocalToolserver) -> None:
    """Smuggling: what a front end takes for the body must not be taken for the next request."""
    inner = sandbox.head("GET /v1/state", "Connection: close")
    request = sandbox.head("POST /v1/calls", "Content-Length: 4", "Transfer-Encoding: chunked")

    answer = sandbox.raw(request + b"0\r\n\r\n" + inner)

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.parametrize(
    ("method", "target", "refusal"),
    [
        ("GET", "/", (404, "not_found")),
        ("GET", "/v2/state", (404, "not_found")),
        ("GET", "/v1/state/", (404, "not_found")),
        ("GET", "/v1/%73tate", (404, "not_found")),
        ("GET", "/debug/pprof/", (404, "not_found")),
        ("DELETE", "/v1/state", (405, "method_not_allowed")),
        ("GET", "/v1/calls", (405, "method_not_allowed")),
        ("POST", "/v1/files?path=x", (405, "method_not_allowed")),
    ],
)
def test_there_is_nothing_else(sandbox: LocalToolserver, method: str, target: str, refusal: tuple[int, str]) -> None:
    assert sandbox.request(method, target).refusal == refusal


def test_spoofed_routing_headers_change_nothing(sandbox: LocalToolserver) -> None:
    spoofed = {"X-Forwarded-For": "10.0.0.1", "X-Original-URL": "/healthz", "X-HTTP-Method-Override": "DELETE"}

    answer = sandbox.request("GET", "/v1/state", headers=spoofed | {"Authorization": ""})

    assert answer.refusal == (401, "unsigned")


def test_a_huge_header_is_refused(sandbox: LocalToolserver) -> None:
    answer = sandbox.raw(sandbox.head("GET /v1/state", "X: " + "y" * (64 << 10)))

    assert answer.startswith(b"HTTP/1.1 431")


def test_slow_headers_are_cut_off_after_five_seconds(sandbox: LocalToolserver) -> None:
    with sandbox.dial() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        began = time.monotonic()
        left = connection.recv(1000)
        took = time.monotonic() - began

    assert left == b"" or left.startswith(b"HTTP/1.1 408")
    assert 4 < took < 60


def test_the_inside_has_few_connections_and_a_closed_one_makes_room(sandbox: LocalToolserver) -> None:
    """On loopback every client counts as inside."""
    with ExitStack() as held:
        for _ in range(8):
            held.enter_context(sandbox.dial()).sendall(b"GET /healthz HTTP/1.1\r\n")
        until(lambda: refused(sandbox))

    until(sandbox.ready)
    assert sandbox.state().counters.connections_refused >= 1


def refused(sandbox: LocalToolserver) -> bool:
    """Tell whether a new connection is closed at once."""
    with sandbox.dial() as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(100) == b""
        except (ConnectionResetError, BrokenPipeError):
            return True


def test_the_outside_has_many(start: Start) -> None:
    """Nobody on a unix socket counts as inside."""
    sandbox = start(unix=True)
    with ExitStack() as held:
        connections = [held.enter_context(sandbox.dial()) for _ in range(255)]
        for connection in connections:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert all(connection.recv(12) == b"HTTP/1.1 200" for connection in connections)
        assert sandbox.shell("echo x").output == "x\n"
        held.enter_context(sandbox.dial())
        assert refused(sandbox)

    until(sandbox.ready)
    assert sandbox.peak_memory() < 64 << 20


def test_a_connection_serves_many_requests(sandbox: LocalToolserver) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    with sandbox.dial() as connection:
        for _ in range(3):
            connection.sendall(request)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200")


def test_garbage_is_answered_or_cut_and_harms_nobody(sandbox: LocalToolserver) -> None:
    for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0" * 100 + b"\r\n\r\n"):
        with sandbox.dial() as connection:
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(1000)
        assert answer == b"" or answer.split(b" ")[1].startswith((b"4", b"5"))

    assert sandbox.ready()
