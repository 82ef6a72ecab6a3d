"""The gateway on a real socket: what it bears, what it cuts off, and how it stops."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.gateway.app import gateway as gateway_of
from rollcage.gateway.serving import BackgroundEnded, server
from support.gateways import LOCAL, TOKEN, Served, all_is_well, parts, served
from support.scripted_use_cases import Scripted, answered
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from rollcage.rollouts.actions import Action, Answer

TOOLS = "/agent-rft/environments/small/tools"
CALL = {"name": "shell", "arguments": "{}", "trace_id": "t", "call_id": "c"}
HEAD = f"POST {TOOLS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"


@pytest.fixture
def gateway() -> Iterator[Served]:
    with served(parts()) as running:
        yield running


def told(port: int, data: bytes) -> bytes:
    """Send these very bytes and return what comes until the other side closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(data)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def cut_off(port: int, begin: bytes, more: bytes) -> bool:
    """Send without end, and say whether the other side put one to it within some 600 MB."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(begin)
        try:
            for _ in range(10_000):
                connection.sendall(more)
        except (BrokenPipeError, ConnectionResetError):
            return True
        return False


def test_a_call_is_answered(gateway: Served) -> None:
    assert gateway.ask("POST", TOOLS, CALL).json()["output"] == "{}"


def test_a_connection_is_kept_for_many_calls(gateway: Served) -> None:
    body = json.dumps(CALL)
    request = f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    last = request.replace(b"Host: x", b"Host: x\r\nConnection: close")
    assert told(gateway.port, request * 5 + last).count(b"HTTP/1.1 200") == 6


def test_an_answer_comes_in_one_piece(gateway: Served) -> None:
    body = json.dumps(CALL)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as line:
        for _ in range(20):
            line.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            assert line.recv(65536).endswith(b"}")


def test_a_body_that_waits_to_be_asked_for_is_asked_for(gateway: Served) -> None:
    body = json.dumps(CALL)
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as line:
        line.sendall(f"{HEAD}Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
        assert line.recv(65536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        line.sendall(body.encode())
        assert line.recv(65536).startswith(b"HTTP/1.1 200")


def test_a_body_in_chunks_is_read(gateway: Served) -> None:
    body = json.dumps(CALL).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    head = f"{HEAD}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode()
    assert told(gateway.port, head + chunks).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "extra",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "Content-Length: -1\r\n\r\n",
        "Content-Length: 99999999999999999999999999\r\n\r\n",
        "Bad Header\r\n\r\n",
    ],
    ids=["length and chunks", "two lengths", "negative", "absurd", "no header"],
)
def test_a_request_that_could_be_read_in_two_ways_is_refused(gateway: Served, extra: str) -> None:
    assert told(gateway.port, (HEAD + extra).encode()).startswith(b"HTTP/1.1 4")
    assert gateway.ask("POST", TOOLS, CALL).status == 200


@pytest.mark.parametrize("target", ["//host/x", "/%00", "/agent-rft/%2e%2e/v1", "*", "/\xff"])
def test_a_strange_path_is_refused_and_harms_nobody(gateway: Served, target: str) -> None:
    request = f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert told(gateway.port, request.encode("latin-1")).startswith(b"HTTP/1.1 4")
    assert gateway.ask("GET", "/healthz").status == 200


def test_whoever_asks_for_the_head_alone_gets_no_body(gateway: Served) -> None:
    request = f"HEAD {TOOLS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"
    head, _, body = told(gateway.port, request.encode()).partition(b"\r\n\r\n")
    assert (head.split(b"\r\n")[0], body) == (b"HTTP/1.1 405 Method Not Allowed", b"")


def test_endless_headers_are_cut_off(gateway: Served) -> None:
    assert cut_off(gateway.port, HEAD.encode() + b"X: ", b"a" * 65536)


def test_a_body_announced_too_large_is_refused_before_it_is_sent(gateway: Served) -> None:
    answer = told(gateway.port, f"{HEAD}Content-Length: 2147483648\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 413")


def test_an_endless_body_in_chunks_is_cut_off(gateway: Served) -> None:
    chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
    assert cut_off(gateway.port, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode(), chunk)


def test_a_body_without_a_token_is_not_read_on(gateway: Served) -> None:
    head = f"POST {TOOLS} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    assert cut_off(gateway.port, head, b"10000\r\n" + b"a" * 65536 + b"\r\n")


def test_an_endless_body_to_the_rest_of_the_gateway_is_cut_off_too(gateway: Served) -> None:
    head = f"POST /v1/rollouts/r/calls HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    chunk = b"10000\r\n" + b"a" * 65536 + b"\r\n"
    assert cut_off(gateway.port, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode(), chunk)


@pytest.mark.parametrize("sent", ["", "POST / HT", HEAD, f"{HEAD}Content-Length: 100\r\n\r\nabc"])
def test_whoever_says_too_little_is_hung_up_on(sent: str) -> None:
    quick = replace(LOCAL, headers_within=timedelta(seconds=0.2), still=timedelta(seconds=0.2))
    with served(parts(), quick) as gateway, socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as line:
        line.sendall(sent.encode())
        # An abort is a reset as often as an end.
        with suppress(ConnectionResetError):
            assert line.recv(1) == b""


class _Held:
    """Use cases whose calls end when the test says so."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.use_cases = Scripted(self._act)

    async def _act(self, _action: Action) -> Answer:
        await asyncio.to_thread(self.release.wait)
        return answered("late, and whole")


def test_a_slow_call_is_not_taken_for_a_slow_client() -> None:
    held = _Held()
    quick = replace(LOCAL, headers_within=timedelta(seconds=0.1), still=timedelta(seconds=0.1))
    with served(parts(held.use_cases), quick) as gateway:
        answers: list[Any] = []
        caller = threading.Thread(target=lambda: answers.append(gateway.ask("POST", TOOLS, CALL)))
        caller.start()
        until(lambda: bool(held.use_cases.actions))
        # Other connections come and are cut off for silence meanwhile.
        assert _silence(gateway.port)
        held.release.set()
        caller.join()
    assert answers[0].json()["output"] == "late, and whole"


def _silence(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as line:
        try:
            return line.recv(1) == b""
        except ConnectionResetError:
            return True


def test_at_sigterm_it_stops_being_ready_and_goes_on_serving_then_lets_calls_end() -> None:
    held = _Held()
    lingering = replace(LOCAL, linger=timedelta(seconds=600))
    made = parts(held.use_cases)
    with served(made, lingering) as gateway:
        answers: list[Any] = []
        early = threading.Thread(target=lambda: answers.append(gateway.ask("POST", TOOLS, CALL)))
        early.start()
        until(lambda: made.admission.in_flight == 1)
        assert gateway.ask("GET", "/readyz").status == 200

        # What uvicorn does with the signal is its own; a signal would reach all of pytest.
        gateway.server.handle_exit(signal.SIGTERM, None)
        refused = gateway.ask("GET", "/readyz")
        assert (refused.status, refused.json()["draining"]) == (503, True)
        late = threading.Thread(target=lambda: answers.append(gateway.ask("POST", TOOLS, CALL)))
        late.start()
        until(lambda: made.admission.in_flight == 2)

        gateway.server.handle_exit(signal.SIGTERM, None)
        until(lambda: not _listens(gateway.port))
        held.release.set()
        early.join()
        late.join()
        gateway.server._captured_signals.clear()  # noqa: SLF001 - or it would be raised here, as uvicorn does at its end
    assert [answer.json()["output"] for answer in answers] == ["late, and whole"] * 2
    assert answers[1].headers["connection"] == "close"


async def test_when_its_background_ends_by_an_error_it_drains_and_says_so() -> None:
    """It once served on for ever, by environments and tokens of the moment when it ended."""
    held, over = _Held(), asyncio.Event()

    async def fail() -> None:
        await over.wait()
        raise LookupError("nobody foresaw this")

    @asynccontextmanager
    async def background() -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
            yield

    made = parts(held.use_cases)
    app = gateway_of(made, checks=all_is_well, background=background)
    running = server(app, replace(LOCAL, signals=False), admission=made.admission)
    serving = asyncio.create_task(running.serve())
    await asyncio.to_thread(until, lambda: running.started)
    gateway = Served(running, running.servers[0].sockets[0].getsockname()[1])
    call = asyncio.create_task(asyncio.to_thread(gateway.ask, "POST", TOOLS, CALL))
    await asyncio.to_thread(until, lambda: made.admission.in_flight == 1)

    over.set()
    await asyncio.to_thread(until, lambda: not _listens(gateway.port))
    assert not serving.done()
    held.release.set()
    assert (await call).json()["output"] == "late, and whole"
    with pytest.raises(BackgroundEnded):
        await serving


def test_a_request_that_is_on_its_way_when_the_door_closes_is_still_served() -> None:
    with served(parts()) as gateway, socket.create_connection(("127.0.0.1", gateway.port), timeout=30) as line:
        body = json.dumps(CALL)
        request = f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        line.sendall(request[:50])
        until(lambda: len(gateway.server.server_state.connections) == 1)
        gateway.server.should_exit = True
        until(lambda: not _listens(gateway.port))
        line.sendall(request[50:])
        answer = b""
        while chunk := line.recv(65536):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in answer


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    return True


def test_connections_beyond_the_bound_are_told_so() -> None:
    with served(parts(), replace(LOCAL, connections=2)) as gateway:
        first = socket.create_connection(("127.0.0.1", gateway.port), timeout=30)
        with first:
            until(lambda: len(gateway.server.server_state.connections) == 1)
            assert gateway.ask("GET", "/healthz").status == 503
        until(lambda: not gateway.server.server_state.connections)
        assert gateway.ask("GET", "/healthz").status == 200
