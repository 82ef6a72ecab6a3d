"""
Look after single connections, where uvicorn does not.

Bounds what a client can hold by saying little or too much, sends answers in one
piece, and asks the application in a quicker way than by messages where it
offers one. What is said on a connection is for the application.
"""

import asyncio
import math
from collections.abc import Coroutine
from functools import lru_cache, partial
from http import HTTPStatus
from os import sched_yield
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from rollcage.gateway.exchange import AGAIN, WHOLE, Again, Headers, Whole
from rollcage.wire import heads

# Trainers send a few hundred bytes of headers; the parser itself knows no bound.
HEADER_BYTES: Final = 32 * 1024

# How often a connection is looked at, as part of the shortest time that it is given.
_LOOKS: Final = 2

# Heads that are known again on one connection: a trainer has a few, whoever has more varies them on purpose.
_MOST_HEADS: Final = 8
_LONGEST_HEAD: Final = 4096

_CLOSE: Final = b"connection: close\r\n"


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
        # Asked for thrice a request, and looking further below takes longer than most of what is done for one.
        self.is_closing = transport.is_closing

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


class Repeated:
    """
    A request with a known head: for the application a turn to answer.

    For uvicorn it is a request that is being answered, and the task that answers it, as far as it asks about those.
    """

    disconnected = more_body = response_started = response_complete = False
    keep_alive = True
    _answering: asyncio.Task[None] | None = None
    _ready: tuple[Whole | None, bytes] = (None, b"")

    def __init__(self, protocol: "GuardedProtocol") -> None:
        self._protocol = protocol

    @property
    def message_event(self) -> "Repeated":
        """What is set when there is more of it."""
        return self

    def set(self) -> None:
        """Nobody waits for more of it."""

    def cancel(self, msg: str = "") -> None:
        """Give it up: it took too long when the gateway stopped."""
        if self._answering:
            self._answering.cancel(msg)
        self._protocol.transport.abort()

    def ready(self, answer: Whole) -> None:
        """Write the answer, but do not send it."""
        self._ready = answer, _spelled(answer, close=answer.close)

    def give(self, answer: Whole) -> None:
        """Answer it, unless nobody is there any more."""
        self._protocol.over(self)
        if not self._protocol.transport.is_closing():
            prepared, spelled = self._ready
            # A connection that is to be closed since then says so.
            self._protocol.give(self, answer, spelled if prepared is answer and self.keep_alive else b"")

    def wait(self, answer: Coroutine[Any, Any, Whole]) -> None:
        """Answer it with what comes of waiting."""
        self._answering = self._protocol.loop.create_task(self._waited(answer))

    async def _waited(self, answer: Coroutine[Any, Any, Whole]) -> None:
        try:
            self.give(await answer)
        except BaseException:
            self._protocol.over(self)
            self._protocol.transport.close()
            raise


class GuardedProtocol(HttpToolsProtocol):
    """A connection that cannot be held by saying little, nor fed with headers for ever."""

    headers_within = 10.0
    still = 30.0

    # uvicorn's own, which hold a repeated request as well.
    cycle: Any
    tasks: set[Any]

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
        self._in_message = False
        # The head of the last bytes, if they are one whole request; and the heads that are known again.
        self._head: heads.Head | None = None
        self._heads: dict[heads.Head, Again] = {}
        self._most = self.limit_concurrency or math.inf
        self._look_every = min(self.headers_within, self.still) / _LOOKS
        self._watch = self.loop.call_later(self._look_every, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking."""
        self._watch.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in bytes."""
        self._last_data = self.loop.time()
        if not self._in_message:
            for head, again in self._heads.items():
                if (body := head.body(data)) is not None and self._unhindered():
                    self._begin(again, body)
                    return
        self._head = None if self._in_message else heads.head_of(data)
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

    def on_message_begin(self) -> None:
        """Note that a request has begun."""
        self._in_message = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Let the request begin."""
        self._reading_headers = False
        self._head_bytes = 0
        super().on_headers_complete()
        if self._closing:
            self.cycle.keep_alive = False
        known = self._head if self._head and heads.plain(name for name, _ in self.headers) else None
        cast("dict[str, Any]", self.scope)[WHOLE] = partial(self._answer, self.cycle, known)

    def on_message_complete(self) -> None:
        """Note that the request is whole."""
        self._receiving = self._in_message = False
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send; hang up on whoever was answered in the middle of its body, since uvicorn would read on without end."""
        self._corked.flush()
        # Whoever has sent another request has sent all of this one.
        in_the_middle = self.cycle.more_body and not self.pipeline
        super().on_response_complete()
        if in_the_middle:
            self.transport.close()

    def shutdown(self) -> None:
        """Close, unless a request is on its way, which is served first; whoever stays silent is cut off as ever."""
        if self._reading_headers:
            self._closing = True
        else:
            super().shutdown()

    def _answer(self, cycle: RequestResponseCycle, head: heads.Head | None, answer: Whole) -> bool:
        """
        Give a whole answer at once, or return False: then it takes the usual way.

        As two messages of ASGI it would be checked and copied piece by piece.
        """
        # An answer to HEAD tells the length of a body that it does not have.
        if self.flow.write_paused or cycle.disconnected or cycle.response_started or cycle.scope["method"] == "HEAD":
            return False
        if head and answer.status == HTTPStatus.OK:
            self._remember(head, cast("dict[str, Any]", cycle.scope).get(AGAIN))
        self.give(cycle, answer)
        return True

    def _remember(self, head: heads.Head, again: Again | None) -> None:
        if again and len(head.before) + len(head.after) <= _LONGEST_HEAD:
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            self._heads[head] = again

    def _unhindered(self) -> bool:
        """Tell whether a request can be begun at once: in turn, and where uvicorn would not refuse it."""
        return (
            self.cycle.response_complete
            and not self.flow.write_paused
            and not self.transport.is_closing()
            and len(self.connections) < self._most
            and len(self.tasks) < self._most
        )

    def _begin(self, again: Again, body: bytes) -> None:
        """Let a request begin whose head is known."""
        self._unset_keepalive_if_required()
        request = Repeated(self)
        self.cycle = request
        self.tasks.add(request)
        again(body, request)

    def over(self, request: Repeated) -> None:
        """Let uvicorn no longer wait for a request before it ends."""
        self.tasks.discard(request)

    def give(self, request: RequestResponseCycle | Repeated, answer: Whole, spelled: bytes = b"") -> None:
        """Write a whole answer, which may have been *spelled* before."""
        close = answer.close or not request.keep_alive
        self._corked.flush()
        self._transport.write(spelled or _spelled(answer, close=close))
        if not self.tasks:
            # Nobody else waits for us. Whoever was answered may wait for this processor; the rest is only tidying up.
            sched_yield()
        request.response_started = request.response_complete = True
        request.message_event.set()
        if close:
            self.transport.close()
        self.on_response_complete()

    def _look(self) -> None:
        now = self.loop.time()
        stuck_in_headers = self._reading_headers and now - self._began > self.headers_within
        # Not while we ourselves do not read on.
        reads = not self.flow.read_paused
        if self._receiving and (stuck_in_headers or (reads and now - self._last_data > self.still)):
            self.transport.abort()
            return
        self._watch = self.loop.call_later(self._look_every, self._look)


def _spelled(answer: Whole, *, close: bool) -> bytes:
    return b"%bcontent-length: %d\r\n%b%b\r\n%b" % (
        STATUS_LINE[answer.status],
        len(answer.body),
        _lines(answer.headers),
        _CLOSE if close else b"",
        answer.body,
    )


# Nearly all answers have the same.
@lru_cache(maxsize=64)
def _lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])
