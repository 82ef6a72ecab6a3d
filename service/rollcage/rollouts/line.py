"""
HTTP/1.1 to sandboxes over kept connections, telling exactly how far a request got.

``Unsent``: not a byte of it has left. ``Cut``: it may have been delivered.
Anything else is an answer. No request is repeated here. General HTTP clients
blur the first two, and take half as much processor time again or more.
"""

import asyncio
from asyncio import Future
from collections import OrderedDict
from datetime import timedelta
from functools import partial
from typing import Any, Final

from rollcage.rollouts.connection import Connection, Cut, Reply, Then, Unsent

# Sandboxes close idle connections after five minutes; one that was idle for long may be about to close.
_IDLE_SECONDS: Final = 60.0

# A loop that is later than this for its own appointments may have been late for the answer, too. It is given that time
# again, so many times: in a burst on a busy machine it is not the sandboxes that are slow.
_PUNCTUAL: Final = 0.05
_LATE_AT_MOST: Final = 10

# Connections kept open to all sandboxes together, the longest idle giving way.
_MOST_IDLE: Final = 4096


class Line:
    """Connections to sandboxes, kept for the next request."""

    def __init__(self, *, connect: timedelta) -> None:
        self._connect = connect.total_seconds()
        self._loop = asyncio.get_running_loop()
        # In use or idle; those that were idle for longest come first. One that is open for the first time is not here.
        self._kept: OrderedDict[Connection, None] = OrderedDict()
        self._by_address: dict[str, list[Connection]] = {}
        self._closed = False

    async def reach(self, address: str) -> Connection:
        """Return a connection to send one request on, or raise Unsent."""
        return self.kept(address) or await self._open(address)

    async def exchange(self, connection: Connection, request: bytes, *, seconds: float) -> Reply:
        """
        Send a request and return the answer, or raise Cut.

        It is written before anything is awaited: whoever was cancelled earlier has sent nothing.
        """
        if not connection.usable:
            raise Unsent("the connection has ended meanwhile")
        answer: Future[Reply] = self._loop.create_future()
        self.send(connection, request, seconds=seconds, then=partial(_settle, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            self._end(connection)
            raise

    def send(self, connection: Connection, request: bytes, *, seconds: float, then: Then) -> None:
        """Send a request over a connection that is usable; *then* gets the answer, or Cut."""
        connection.send(request, seconds=seconds, then=partial(self._over, connection, then))

    async def close(self) -> None:
        """Close all connections that are not in use; those in use are closed after it."""
        self._closed = True
        for connection in tuple(self._kept):
            if not connection.busy:
                self._end(connection)
        # Sockets are closed by the loop, at its next turn.
        await asyncio.sleep(0)

    def kept(self, address: str) -> Connection | None:
        """Return a connection that is open and idle, if there is one: for a request that is written at once."""
        oldest = self._loop.time() - _IDLE_SECONDS
        for connection in reversed(tuple(self._by_address.get(address, ()))):
            if connection.usable and connection.idle_since >= oldest:
                return connection
            if not connection.busy:
                self._end(connection)
        return None

    def keep(self, connection: Connection) -> None:
        """Keep a connection for the next request."""
        if self._closed or not connection.usable:
            self._end(connection)
            return
        connection.idle_since = self._loop.time()
        if connection in self._kept:
            self._kept.move_to_end(connection)
            return
        self._kept[connection] = None
        self._by_address.setdefault(connection.address, []).append(connection)
        if len(self._kept) > _MOST_IDLE:
            self._end(next(one for one in self._kept if not one.busy))

    def _over(self, connection: Connection, then: Then, outcome: Reply | Cut) -> None:
        then(outcome)
        if isinstance(outcome, Cut):
            self._end(connection)
        else:
            self.keep(connection)

    def _end(self, connection: Connection) -> None:
        connection.close()
        if connection in self._kept:
            del self._kept[connection]
            others = self._by_address[connection.address]
            others.remove(connection)
            if not others:
                del self._by_address[connection.address]

    async def _open(self, address: str) -> Connection:
        opening = asyncio.ensure_future(self._opened(address))
        in_time = False
        try:
            in_time = await self._in_time(opening)
        finally:
            if not in_time:
                opening.add_done_callback(_unwanted)
                opening.cancel()
        if not in_time:
            raise Unsent(f"no connection to {address} in {self._connect:g} s")
        try:
            return opening.result()
        except OSError as error:
            raise Unsent(f"no connection to {address}: {error}") from error

    async def _in_time(self, opening: Future[Connection]) -> bool:
        """Tell whether a connection came in the time for it, not counting what we ourselves are late."""
        left = self._connect
        for _ in range(_LATE_AT_MOST):
            until = self._loop.time() + left
            await asyncio.wait({opening}, timeout=left)
            left = self._loop.time() - until
            if opening.done() or left < _PUNCTUAL:
                break
        return opening.done()

    async def _opened(self, address: str) -> Connection:
        def made() -> Connection:
            return Connection(address)

        if address.startswith("unix:"):
            _, connection = await self._loop.create_unix_connection(made, _socket_path(address))
        else:
            host, port = _host_and_port(address)
            _, connection = await self._loop.create_connection(made, host, port)
        return connection


def _unwanted(opening: Future[Connection]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _settle(answer: Future[Reply], outcome: Reply | Cut) -> None:
    if answer.done():
        return
    if isinstance(outcome, Cut):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)


def _socket_path(address: str) -> str:
    path = address.removeprefix("unix:")
    # As /proc/net/unix and others write it: @ stands for the zero byte of a name without a file.
    return f"\0{path[1:]}" if path.startswith("@") else path


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix("http://").rstrip("/").rpartition(":")
    return host.strip("[]"), int(port)


def header(name: str, value: Any) -> bytes:
    """Return one line of a request's head."""
    return f"{name}: {value}\r\n".encode("latin-1")
