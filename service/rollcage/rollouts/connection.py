"""
One connection to a toolserver: a request at a time, and its answer or the knowledge that none will come.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Protocol, TypeAlias, cast

import httptools

from rollcage.core.values import value
from rollcage.wire import heads
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


# Takes what came of a request; must not raise.
Then: TypeAlias = Callable[[Reply | Cut], None]


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
        self._then: Then | None = None
        self._late: asyncio.TimerHandle | None = None
        # An answer that is whole, until it is given.
        self._reply: Reply | None = None
        self._body = bytearray()
        self._boot = ""
        self._replayed = False
        self._names: list[bytes] = []
        # The parser has seen a part of an answer.
        self._parsing = False
        # A head that was parsed before, and what it said.
        self._head: heads.Head | None = None
        self._said = Reply(0, b"", "", replayed=False)

    @property
    def busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._then is not None

    @property
    def usable(self) -> bool:
        """Whether a request can be written now."""
        return self._then is None and self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, *, seconds: float, then: Then) -> None:
        """Write a request; *then* gets its answer, or Cut after so long."""
        self._then = then
        self._write(request)
        self._late = self._call_later(seconds, self._give_up, seconds)

    def close(self) -> None:
        """Close without waiting for anything."""
        if self._transport:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection over."""
        self._transport = cast("asyncio.Transport", transport)
        self._write = self._transport.write
        self._call_later = asyncio.get_running_loop().call_later

    def data_received(self, data: bytes) -> None:
        """Read on; what nobody asked for, or more than anybody wants, ends the connection."""
        if self._then is None:
            self.close()
            return
        begins = not self._parsing
        if begins and self._head and (body := self._head.body(data)) is not None:
            said = self._said
            self._over(Reply(said.status, body, said.boot, said.replayed))
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.close()
        if len(self._body) > _MOST_BYTES:
            self.close()
        reply, self._reply = self._reply, None
        if reply is None:
            return
        if begins and heads.plain(self._names):
            self._head, self._said = heads.head_of(data), replace(reply, body=b"")
        self._over(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits that no answer will come."""
        self._transport = None
        self._over(Cut(f"the connection ended: {exc}" if exc else "the connection ended"))

    def on_message_begin(self) -> None:
        """Begin an answer."""
        self._body, self._boot, self._replayed = bytearray(), "", False
        self._names, self._parsing = [], True

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note the headers that matter."""
        lower = name.lower()
        self._names.append(lower)
        if lower == _BOOT:
            self._boot = value.decode(errors="replace")
        elif lower == _REPLAYED:
            self._replayed = value == b"true"

    def on_body(self, body: bytes) -> None:
        """Collect the body."""
        self._body += body

    def on_message_complete(self) -> None:
        """End an answer; one that nobody asked for, right behind it, ends the connection."""
        self._parsing = False
        if self._reply or not self._parser.should_keep_alive():
            self.close()
        self._reply = self._reply or Reply(
            self._parser.get_status_code(), bytes(self._body), self._boot, self._replayed
        )
        self._body = bytearray()

    def _give_up(self, seconds: float) -> None:
        self._over(Cut(f"no answer in {seconds:g} s"))

    def _over(self, outcome: Reply | Cut) -> None:
        then, late = self._then, self._late
        self._then = self._late = None
        if then:
            then(outcome)
        if late:
            late.cancel()
