"""How far a request got, told exactly; against a server that behaves as each test says."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rollcage.rollouts.connection import Connection, Cut, Reply, Unsent
from rollcage.rollouts.line import Line

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nRollcage-Boot: b1\r\nRollcage-Replayed: true\r\n\r\nhi"
CLOSING = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
SOON = 0.2


class Server:
    """Answers each request with the next of its answers; None closes instead, b"" says nothing."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.address = ""
        self._serving = asyncio.TaskGroup()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        self.address = f"http://{host}:{port}"
        async with self._serving:
            yield self
            server.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.create_task(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(ConnectionError):
            while await reader.read(1 << 16):
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
        writer.close()


@asynccontextmanager
async def line_to(*answers: bytes | None) -> AsyncIterator[tuple[Line, Server]]:
    line = Line(connect=timedelta(seconds=5))
    async with Server(*answers).running() as server:
        try:
            yield line, server
        finally:
            await line.close()


async def exchange(line: Line, address: str, *, seconds: float = 5.0) -> Reply:
    return await line.exchange(await line.reach(address), REQUEST, seconds=seconds)


async def test_an_answer_is_read_with_what_matters_of_its_headers() -> None:
    async with line_to(OK) as (line, server):
        reply = await exchange(line, server.address)

    assert reply == Reply(200, b"hi", "b1", replayed=True)


async def test_one_connection_serves_request_after_request() -> None:
    async with line_to(OK, OK, OK) as (line, server):
        for _ in range(3):
            await exchange(line, server.address)

        assert server.connections == 1


async def test_requests_at_the_same_time_have_a_connection_each() -> None:
    async with line_to(OK, OK) as (line, server):
        await asyncio.gather(*(exchange(line, server.address) for _ in range(2)))

        assert server.connections == 2


async def test_a_connection_that_the_server_closes_is_not_used_again() -> None:
    async with line_to(CLOSING, OK) as (line, server):
        await exchange(line, server.address)
        await exchange(line, server.address)

        assert server.connections == 2


async def test_nobody_there_means_that_nothing_was_sent() -> None:
    async with line_to() as (line, server):
        address = server.address

    with pytest.raises(Unsent):
        await line.reach(address)


async def test_a_socket_that_is_not_there_means_the_same() -> None:
    with pytest.raises(Unsent):
        await Line(connect=timedelta(seconds=5)).reach("unix:/nowhere/at/all")


async def test_a_loop_that_is_late_itself_takes_no_server_for_dead() -> None:
    line = Line(connect=timedelta(seconds=0.1))
    with socket.create_server(("127.0.0.1", 0)) as server:
        reaching = asyncio.create_task(line.reach(f"http://127.0.0.1:{server.getsockname()[1]}"))
        await asyncio.sleep(0)
        time.sleep(0.3)  # noqa: ASYNC251 - others have kept the loop

        (await reaching).close()
    await line.close()


async def test_a_server_that_does_not_answer_is_given_up() -> None:
    line = Line(connect=timedelta(seconds=0.1))
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as crowd:
        place = server.getsockname()
        # One that fills its line: the next one's packets are dropped.
        for _ in range(3):
            other = crowd.enter_context(socket.socket())
            other.settimeout(0)
            other.connect_ex(place)

        with pytest.raises(Unsent):
            await line.reach(f"http://127.0.0.1:{place[1]}")
    await line.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="closed without a word"),
        pytest.param(b"", id="silent"),
        pytest.param(OK[:-1], id="all but one byte"),
        pytest.param(b"SSH-2.0-OpenSSH_9.6\r\n", id="another protocol"),
    ],
)
async def test_without_a_whole_answer_the_request_may_have_been_delivered(answer: bytes | None) -> None:
    async with line_to(answer) as (line, server):
        with pytest.raises(Cut):
            await exchange(line, server.address, seconds=SOON)


async def test_after_a_cut_the_next_request_has_a_connection_of_its_own() -> None:
    async with line_to(b"", OK) as (line, server):
        with pytest.raises(Cut):
            await exchange(line, server.address, seconds=SOON)

        assert (await exchange(line, server.address)).body == b"hi"
        assert server.connections == 2


async def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async with line_to(OK + OK, OK) as (line, server):
        await exchange(line, server.address)

        assert (await exchange(line, server.address)).body == b"hi"
        assert server.connections == 2


async def test_a_connection_in_use_while_the_line_is_closed_is_closed_after_it() -> None:
    async with line_to(OK) as (line, server):
        connection = await line.reach(server.address)
        answer = asyncio.create_task(line.exchange(connection, REQUEST, seconds=5.0))
        await asyncio.sleep(0)
        await line.close()

        assert (await answer).body == b"hi"
        assert not connection.usable


def answer(body: bytes, *headers: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (b"".join(headers), len(body), body)


async def test_answers_with_a_head_seen_before_are_read_like_the_first() -> None:
    first, second = b"Rollcage-Boot: b1\r\n", b"Rollcage-Boot: b2\r\n"
    told = [answer(b"hi", first), answer(b"hello", first), answer(b"", first), answer(b"x" * 9000, first)]
    async with line_to(*told, answer(b"hi", second), answer(b"hey", first)) as (line, server):
        replies = [await exchange(line, server.address) for _ in range(6)]

        assert [(len(reply.body), reply.boot) for reply in replies] == [
            (2, "b1"),
            (5, "b1"),
            (0, "b1"),
            (9000, "b1"),
            (2, "b2"),
            (3, "b1"),
        ]
        assert server.connections == 1


async def test_a_refusal_is_not_taken_for_the_result_before_it() -> None:
    busy = OK.replace(b"200 OK", b"503 Service Unavailable")
    async with line_to(OK, OK, busy, OK) as (line, server):
        assert [(await exchange(line, server.address)).status for _ in range(4)] == [200, 200, 503, 200]


class Silent(asyncio.Transport):
    """A transport that goes nowhere."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        raise AssertionError("nothing was wrong with the answer")


@pytest.mark.parametrize("at", range(1, len(OK)))
async def test_a_head_seen_before_may_come_in_pieces(at: int) -> None:
    connection = Connection("x")
    connection.connection_made(Silent())
    replies: list[Reply | Cut] = []
    for pieces in ([OK], [OK[:at], OK[at:]], [OK]):
        connection.send(REQUEST, seconds=5.0, then=replies.append)
        for piece in pieces:
            connection.data_received(piece)

    assert replies == [Reply(200, b"hi", "b1", replayed=True)] * 3
