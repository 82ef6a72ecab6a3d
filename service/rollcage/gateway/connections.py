"""
Look after single connections, where uvicorn does not.

Bounds what a client can hold by saying little or too much, and sends answers
in one piece. What is said on a connection is for the application, which finds
in its scope a quicker way to give a whole answer at once.
"""

import asyncio
from functools import partial
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from rollcage.gateway.exchange import WHOLE, Headers

# Trainers send a few hundred bytes of headers; the parser itself knows no bound.
HEADER_BYTES: Final = 32 * 1024

# How often a connection is looked at, as part of the shortest time that it is given.
_LOOKS: Final = 2


class Corked:
    """
    A transport that sends an answer's head and body together.

    uvicorn writes them one by one, and uvloop sends at once what is written:
    the client would be woken twice, the first time for nothing.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._pieces: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep *data* until the answer is whole, or this moment is over."""
        if not self._pieces:
            self._loop.call_soon(self.flush)
        self._pieces.append(data)

    def flush(self) -> None:
        """Send what was kept."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            self._transport.write(b"".join(pieces))

    def close(self) -> None:
        """Close after all that was written."""
        self.flush()
        self._transport.close()


class GuardedProtocol(HttpToolsProtocol):
    """A connection that cannot be held by saying little, nor fed with headers for ever."""

    headers_within = 10.0
    still = 30.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look after the connection."""
        self._transport = transport
        self._corked = Corked(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._corked))
        self._head_bytes = 0
        self._last_data = self._began = self.loop.time()
        # From its first byte on until the request is whole; a connection begins as if with one.
        self._receiving = True
        self._reading_headers = True
        self._closing = False
        self._look_every = min(self.headers_within, self.still) / _LOOKS
        self._watch = self.loop.call_later(self._look_every, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        self._last_data = self.loop.time()
        if not self._receiving:
            self._receiving = self._reading_headers = True
            self._began = self._last_data
        if self._reading_headers:
            # The parser tells of a header once it is whole, and one header can be endless.
            self._head_bytes += len(data)
            if self._head_bytes > HEADER_BYTES + len(data):
                self.send_400_response("Headers are too large.")
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Let the request begin."""
        self._reading_headers = False
        self._head_bytes = 0
        super().on_headers_complete()
        if self._closing:
            self.cycle.keep_alive = False
        cast("dict[str, Any]", self.scope)[WHOLE] = partial(self._answer, self.cycle)

    def _answer(self, cycle: RequestResponseCycle, status: int, headers: Headers, body: bytes) -> bool:
        """
        Give a whole answer at once, or return False: then it takes the usual way.

        As two messages of ASGI it would be checked and copied piece by piece.
        """
        if self.flow.write_paused or cycle.disconnected or cycle.response_started or not cycle.keep_alive:
            return False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self._corked.flush()
        self._transport.write(b"%bcontent-length: %d\r\n%b\r\n%b" % (STATUS_LINE[status], len(body), lines, body))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._receiving = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send; hang up on whoever was answered in the middle of its body, since uvicorn would read on without end."""
        self._corked.flush()
        super().on_response_complete()
        if self.cycle.more_body and not self.pipeline:
            self.transport.close()

    def shutdown(self) -> None:
        """Close, unless a request is on its way, which is served first; whoever stays silent is cut off as ever."""
        if self._reading_headers:
            self._closing = True
        else:
            super().shutdown()

    def _look(self) -> None:
        now = self.loop.time()
        stuck_in_headers = self._reading_headers and now - self._began > self.headers_within
        # Not while we ourselves do not read on.
        reads = not self.flow.read_paused
        if self._receiving and (stuck_in_headers or (reads and now - self._last_data > self.still)):
            self.transport.abort()
            return
        self._watch = self.loop.call_later(self._look_every, self._look)
