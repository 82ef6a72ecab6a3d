"""
One connection to Redis: orders go out in the order in which they came, answers come back in the same.

Every call waits for two round trips, so what a round trip costs in this process
matters: redis-py's pipelines take some 0.2 ms of it, this takes a tenth. The
library still connects and signs in (addresses, TLS, passwords are its
business); then its parser gives way to this one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias, cast

import hiredis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ResponseError

from rollcage.store import certificate

Command: TypeAlias = tuple[str | int | bytes, ...]

# Whoever asks tries again; the library should not do it as well.
_ONCE: Final = Retry(NoBackoff(), 0)

_UNASKED: Final = hiredis.PushNotification

# What a server says to the commands of a transaction before its end, unless something is wrong with them.
_BEGUN: Final = b"+OK\r\n"
_QUEUED: Final = b"+QUEUED\r\n"

# As the server reads it; the function's own type says that a command has one word.
packed: Final = cast("Callable[[Command], bytes]", hiredis.pack_command)


def lengthened(command: bytes, more: Command) -> bytes:
    """Return a packed command with more words behind its own."""
    end, added = command.index(b"\r"), packed(more)
    return b"*%d%b%b" % (int(command[1:end]) + len(more), command[end:], added[added.index(b"$") :])


class Order(Protocol):
    """A command on its way, as bytes, and what becomes of its answer."""

    packed: bytes
    # So many answers come before the one that counts: to commands that were sent along.
    ahead: int

    def answered(self, answer: Any) -> None:
        """Take the answer; an error of the server is a ResponseError."""

    def lost(self, *, closed: bool) -> bool:
        """Hear that this connection will not answer; return whether to send it again, never if all is *closed*."""


class Pipe(asyncio.Protocol):
    """A connection that is open; *lost* gets the orders that it will not answer, once."""

    def __init__(self, connection: Any, *, seconds: float, lost: Callable[[Sequence[Order]], None]) -> None:
        # It complains when it is dropped before it was told that it is closed.
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._transport = cast("asyncio.Transport", connection._writer.transport)  # noqa: SLF001
        self._reader = hiredis.Reader(replyError=ResponseError)
        self._seconds = seconds
        self._lost = lost
        self._pending: deque[Order] = deque()
        # When the oldest order must have been answered, looked at now and then.
        self._answered_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self._transport.set_protocol(self)

    @property
    def usable(self) -> bool:
        """Whether orders can be sent."""
        return not self._transport.is_closing()

    @property
    def idle(self) -> bool:
        """Whether orders can be sent, and every one before was answered."""
        return not self._pending and self.usable

    @property
    def certificate_expires(self) -> float:
        """When the server's certificate does, in seconds since 1970; 0 if it shows none."""
        return certificate.expires(self._transport.get_extra_info("ssl_object"))

    def send(self, orders: Sequence[Order]) -> None:
        """Send orders, in one piece."""
        if not self._pending:
            self._answered_at = self._loop.time()
        self._pending.extend(orders)
        self._transport.write(orders[0].packed if len(orders) == 1 else b"".join([order.packed for order in orders]))
        if self._watch is None:
            self._look_later(self._seconds)

    def close(self) -> None:
        """Close at once; what was not answered is lost."""
        if self._watch:
            self._watch.cancel()
        self._transport.abort()
        self._connection._writer = self._connection._reader = None  # noqa: SLF001 - nothing public does so at once
        unanswered, self._pending = self._pending, deque()
        if unanswered:
            self._lost(unanswered)

    def data_received(self, data: bytes) -> None:
        """Give out the answers that are whole."""
        reader, pending = self._reader, self._pending
        if pending and (known := pending[0].ahead) and not reader.has_data():
            # Told one by one, these would take longer than the answer behind them.
            begun = _BEGUN + _QUEUED * (known - 1)
            if data.startswith(begun):
                pending[0].ahead, data = 0, data[len(begun) :]
        reader.feed(data)
        while pending and (answer := reader.gets()) is not False:
            # What a server says of itself, unasked, answers nobody.
            if isinstance(answer, _UNASKED):
                continue
            order = pending[0]
            if order.ahead:
                order.ahead -= 1
            else:
                pending.popleft()
                order.answered(answer)
        self._answered_at = self._loop.time()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what was not answered."""
        del exc
        self.close()

    def _look_later(self, seconds: float) -> None:
        self._watch = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        self._watch = None
        if not self._pending:
            return
        left = self._answered_at + self._seconds - self._loop.time()
        if left <= 0:
            # A server that says nothing for so long is gone, whatever its connection looks like.
            self.close()
        else:
            self._look_later(left)


async def open_pipe(client: Redis, *, seconds: float, lost: Callable[[Sequence[Order]], None]) -> Pipe:
    """Connect as *client* does, once; raises the library's errors."""
    pool = client.connection_pool
    connection: Any = pool.connection_class(**{**pool.connection_kwargs, "retry": _ONCE})
    try:
        await connection.connect()
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return Pipe(connection, seconds=seconds, lost=lost)
