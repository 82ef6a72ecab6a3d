"""
A kept connection whose heads the gateway knows again: every request is answered as if it had been parsed.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self

import pytest

from rollcage.gateway.connections import GuardedProtocol
from rollcage.gateway.ports import Limits
from rollcage.gateway.tenants import Directory
from rollcage.telemetry.labels import DialectLabel, status_label
from support.gateways import LOCAL, THEIRS, TOKEN, Reply, parts, served
from support.scripted_use_cases import Scripted, answered
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollcage.gateway.tenants import Tenant
    from rollcage.rollouts.actions import Action, Answer

TOOLS = "/agent-rft/environments/small/tools"


class Kept:
    """A client that keeps its connection and says exactly what it is told to."""

    def __init__(self, port: int) -> None:
        self.line = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.line.close()

    def ask(self, number: int, **changes: Any) -> Reply:
        self.line.sendall(request(number, **changes))
        return self.answer()

    def answer(self) -> Reply:
        while b"\r\n\r\n" not in self._received:
            self._more()
        head, _, rest = self._received.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        self._received, length = rest, int(headers["content-length"])
        while len(self._received) < length:
            self._more()
        body, self._received = self._received[:length], self._received[length:]
        return Reply(int(status.split()[1]), headers, body)

    def over(self) -> bool:
        """Wait until the other side closes, and say whether it had nothing more to say."""
        return not self._received and self.line.recv(1) == b""

    def _more(self) -> None:
        data = self.line.recv(65536)
        assert data, "the connection ended before the answer was whole"
        self._received += data


def request(number: int, *, token: str = TOKEN, padding: int = 0, extra: str = "") -> bytes:
    """Return a call whose arguments are its number, so that its answer is known."""
    call = {"name": "shell", "arguments": str(number), "trace_id": "t", "call_id": f"c{number}", "item": "x" * padding}
    body = json.dumps(call)
    head = f"POST {TOOLS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give a list that grows with every request that goes through the parser."""
    seen: list[str] = []
    usual = GuardedProtocol.on_message_begin

    def noted(self: GuardedProtocol) -> None:
        seen.append("request")
        usual(self)

    monkeypatch.setattr(GuardedProtocol, "on_message_begin", noted)
    return seen


@pytest.fixture(params=[False, True], ids=["calls are waited for", "calls are plain"])
def plainly(request: pytest.FixtureRequest) -> bool:
    """Tell in which of the two ways an answer comes; nothing may come of it."""
    return bool(request.param)


class Held:
    """Use cases whose calls end when the test says so, in their order."""

    def __init__(self, *, plainly: bool) -> None:
        self.release = threading.Semaphore(0)
        self.use_cases = Scripted(self._act, plainly=plainly)

    async def _act(self, action: Action) -> Answer:
        await asyncio.to_thread(self.release.acquire)
        return answered(str(action.arguments))


def outputs(replies: list[Reply]) -> list[tuple[int, str]]:
    return [(reply.status, reply.json()["output"]) for reply in replies]


def test_of_many_requests_with_one_head_only_the_first_is_parsed(parsed: list[str], *, plainly: bool) -> None:
    made = parts(Scripted(plainly=plainly))
    with served(made) as gateway, Kept(gateway.port) as client:
        replies = [client.ask(number, padding=number * 7 % 4000) for number in range(200)]

    assert outputs(replies) == [(200, str(number)) for number in range(200)]
    assert replies[0].headers == {**replies[1].headers, "content-length": replies[0].headers["content-length"]}
    assert len(parsed) == 1
    assert made.admission.in_flight == 0
    assert made.metrics.requests.at(DialectLabel.AGENT_RFT, status_label(200))._value.get() == 200  # noqa: SLF001


def test_every_connection_has_its_own_heads(parsed: list[str]) -> None:
    with served(parts()) as gateway:
        for number in range(3):
            with Kept(gateway.port) as client:
                assert outputs([client.ask(number), client.ask(number)]) == [(200, str(number))] * 2

    assert len(parsed) == 3


def test_a_head_that_differs_is_parsed(parsed: list[str]) -> None:
    with served(parts()) as gateway, Kept(gateway.port) as client:
        for number in range(40):
            assert client.ask(number, extra=f"X-Request-Id: {number}\r\n").status == 200

    assert len(parsed) == 40


def test_a_token_counts_each_time_it_is_sent(parsed: list[str]) -> None:
    class Door:
        def __init__(self) -> None:
            self.tenants = made.tenants

        def holder(self, token: str) -> Tenant | None:
            return self.tenants.holder(token)

    made = parts()
    door = Door()
    with served(replace(made, tenants=door)) as gateway, Kept(gateway.port) as client:
        assert [client.ask(1).status, client.ask(2).status] == [200, 200]
        door.tenants = Directory.of(())
        assert [client.ask(3).status, client.ask(4).status] == [401, 401]
        door.tenants = made.tenants
        assert client.ask(5).status == 200

    assert len(parsed) == 1


def test_whoever_was_refused_is_not_known_again(parsed: list[str]) -> None:
    with served(parts()) as gateway, Kept(gateway.port) as client:
        assert [client.ask(number, token="nobodys-" + THEIRS).status for number in range(3)] == [401] * 3

    assert len(parsed) == 3


def test_a_body_that_is_too_large_is_refused_whatever_its_head() -> None:
    made = parts(limits=Limits(rft_body_bytes=2000))
    with served(made) as gateway, Kept(gateway.port) as client:
        statuses = [client.ask(number, padding=padding).status for number, padding in enumerate((0, 100, 3000, 0))]

    assert statuses == [200, 200, 413, 200]


def test_what_cannot_be_read_is_refused_and_leaves(*, plainly: bool) -> None:
    made = parts(Scripted(plainly=plainly))
    with served(made) as gateway, Kept(gateway.port) as client:
        client.ask(0)
        garbage = request(1).replace(b"{", b"[")
        client.line.sendall(garbage)
        assert client.answer().status == 400
        assert client.ask(2).status == 200

    assert made.admission.in_flight == 0


@pytest.mark.parametrize("at", [1, 17, 60, 150, -60, -1])
def test_a_request_with_a_known_head_may_come_in_pieces(at: int) -> None:
    with served(parts()) as gateway, Kept(gateway.port) as client:
        client.ask(0)
        for number in (1, 2):
            client.line.sendall(request(number)[:at])
            # By the time that another is answered, these bytes have been taken in.
            assert gateway.ask("GET", "/healthz").status == 200
            client.line.sendall(request(number)[at:])
            assert outputs([client.answer()]) == [(200, str(number))]
            assert outputs([client.ask(number + 2)]) == [(200, str(number + 2))]


def test_what_is_sent_ahead_is_answered_in_turn(*, plainly: bool) -> None:
    held = Held(plainly=plainly)
    with served(parts(held.use_cases)) as gateway, Kept(gateway.port) as client:
        held.release.release()
        client.ask(0)
        client.line.sendall(request(1))
        until(lambda: len(held.use_cases.actions) == 2)
        client.line.sendall(request(2) + request(3))
        client.line.sendall(request(4))
        assert gateway.ask("GET", "/healthz").status == 200
        # None is begun before the one before it is answered.
        assert len(held.use_cases.actions) == 2
        held.release.release(4)

        assert outputs([client.answer() for _ in range(4)]) == [(200, str(number)) for number in (1, 2, 3, 4)]


@contextmanager
def stopping(held: Held, **changes: Any) -> Iterator[Kept]:
    """Lend a client that waits for a call with a known head while its gateway stops."""
    made = parts(held.use_cases)
    serving = replace(LOCAL, linger=timedelta(seconds=600), **changes)
    with served(made, serving) as gateway, Kept(gateway.port) as client:
        held.release.release()
        client.ask(0)
        client.line.sendall(request(1))
        until(lambda: made.admission.in_flight == 1)
        # Twice: be no longer ready, then close the door.
        gateway.server.handle_exit(signal.SIGTERM, None)
        gateway.server.handle_exit(signal.SIGTERM, None)
        yield client
        gateway.server._captured_signals.clear()  # noqa: SLF001 - or it would be raised here, as uvicorn does at its end


def test_a_call_in_flight_at_sigterm_is_answered_and_is_the_last(*, plainly: bool) -> None:
    held = Held(plainly=plainly)
    with stopping(held) as client:
        held.release.release()
        reply = client.answer()

        assert outputs([reply]) == [(200, "1")]
        assert reply.headers["connection"] == "close"
        assert client.over()


def test_a_call_that_outlives_the_drain_gets_no_answer(*, plainly: bool) -> None:
    held = Held(plainly=plainly)
    with stopping(held, drain=timedelta(seconds=1)) as client:
        assert client.over()
        held.release.release()


def test_a_client_that_hangs_up_leaves_a_call_that_comes_to_its_end(*, plainly: bool) -> None:
    held = Held(plainly=plainly)
    made = parts(held.use_cases)
    with served(made) as gateway:
        with Kept(gateway.port) as client:
            held.release.release()
            client.ask(0)
            client.line.sendall(request(1))
            until(lambda: made.admission.in_flight == 1)
        # It is waited for, should the gateway be told to stop now.
        assert len(gateway.server.server_state.tasks) == 1
        held.release.release()
        until(lambda: made.admission.in_flight == 0)
        until(lambda: not gateway.server.server_state.tasks)
        held.release.release()
        assert gateway.ask("POST", TOOLS, {"name": "shell", "arguments": "2"}).status == 200


def test_a_silent_connection_is_closed_after_its_time() -> None:
    with served(parts(), replace(LOCAL, idle=timedelta(seconds=1))) as gateway, Kept(gateway.port) as client:
        client.ask(0)
        client.ask(1)
        assert client.over()


def test_requests_beyond_the_bound_of_connections_are_told_so() -> None:
    with served(parts(), replace(LOCAL, connections=2)) as gateway, Kept(gateway.port) as client:
        assert [client.ask(0).status, client.ask(1).status] == [200, 200]
        with socket.create_connection(("127.0.0.1", gateway.port), timeout=30):
            until(lambda: len(gateway.server.server_state.connections) == 2)
            assert client.ask(2).status == 503
