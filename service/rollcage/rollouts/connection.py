"""
One connection to a toolserver: a request at a time, and its answer or the knowledge that none will come.
"""

import asyncio
from typing import Final, Protocol, cast

import httptools

from rollcage.core.values import value
from rollcage.wire.messages import BOOT_HEADER, REPLAYED_HEADER

# An answer stays below 1 MB; whoever sends more than this is no toolserver.
_MOST_BYTES: Final = 16 << 20

_BOOT: Final = BOOT_HEADER.lower().encode()
_REPLAYED: Final = REPLAYED_HEADER.lower().encode()


class Unsent(Exception):
    """No connection: nothing was sent."""


class Cut(Exception):
    """No answer: the request may have arrived, and may have been carried out."""


@value
class Reply:
    """One HTTP answer, read to its end."""

    status: int
    body: bytes
    boot: str
    replayed: bool


class _Parser(Protocol):
    """What is used of httptools' parser, which has no types."""

    def feed_data(self, data: bytes) -> None: ...
    def get_status_code(self) -> int: ...
    def should_keep_alive(self) -> bool: ...


class Connection(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._parser = cast("_Parser", httptools.HttpResponseParser(self))
        self._answer: asyncio.Future[Reply] | None = None
        self._body = bytearray()
        self._boot = ""
        self._replayed = False

    @property
    def usable(self) -> bool:
        """Whether a request can be written now."""
        return self._transport is not None and not self._transport.is_closing() and self._answer is None

    def send(self, request: bytes) -> asyncio.Future[Reply]:
        """Write a request; its answer, or Cut, comes in the future."""
        transport = cast("asyncio.Transport", self._transport)
        self._answer = asyncio.get_running_loop().create_future()
        transport.write(request)
        return self._answer

    def give_up(self, seconds: float) -> None:
        """Tell whoever waits that no answer came in time."""
        if self._answer and not self._answer.done():
            self._answer.set_exception(Cut(f"no answer in {seconds:g} s"))

    def close(self) -> None:
        """Close without waiting for anything."""
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read on; what nobody asked for, or more than anybody wants, ends the connection."""
        if self._answer is None:
            self.close()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()
        if len(self._body) > _MOST_BYTES:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits that no answer will come."""
        self._transport = None
        if self._answer and not self._answer.done():
            self._answer.set_exception(Cut(f"the connection ended: {exc}" if exc else "the connection ended"))

    def on_message_begin(self) -> None:
        """Begin an answer."""
        self._body, self._boot, self._replayed = bytearray(), "", False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the headers that matter."""
        lower = name.lower()
        if lower == _BOOT:
            self._boot = value.decode(errors="replace")
        elif lower == _REPLAYED:
            self._replayed = value == b"true"

    def on_body(self, body: bytes) -> None:
        """Collect the body."""
        self._body += body

    def on_message_complete(self) -> None:
        """Give the answer to whoever waits."""
        answer, self._answer = self._answer, None
        if answer and not answer.done():
            answer.set_result(Reply(self._parser.get_status_code(), bytes(self._body), self._boot, self._replayed))
        self._body = bytearray()
        if answer is None or not self._parser.should_keep_alive():
            self.close()
