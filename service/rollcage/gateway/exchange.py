"""
Read a request and write an answer in plain ASGI, for routes where a framework would cost more than the work.

Only bytes and headers; what they mean is for the dialects.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias

import orjson

from rollcage.core.values import value
from rollcage.gateway.errors import BodyEncoded, BodyTooLarge, BodyTooSlow
from rollcage.gateway.problems import MEDIA_TYPE, Problem

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = tuple[tuple[bytes, bytes], ...]

# A trainer sends a megabyte in well under a second; whoever takes this long does not mean to finish.
BODY_SECONDS: Final = 30.0

# Where a scope has the server's quick way to give a whole answer; whether it was taken.
WHOLE: Final = "rollcage.whole"

# Where an application says how it answers a further request with the very same head but for its length. The server
# need not read such a head, nor ask in messages; whatever the application wants to look at of a request besides its
# body it has seen, and will find unchanged.
AGAIN: Final = "rollcage.again"

# A plain number: looking an enumeration's up takes longer than putting the answer together.
_OK: Final = int(HTTPStatus.OK)
_JSON_ALONE: Final = ((b"content-type", b"application/json"),)
_PROBLEM: Final = (b"content-type", MEDIA_TYPE.encode())
_CLOSE: Final = (b"connection", b"close")


@value
class Whole:
    """An answer, and whether it is the last one on its connection."""

    status: int
    headers: Headers
    body: bytes
    close: bool = False


class Turn(Protocol):
    """A request that is to be answered once, now or later."""

    def ready(self, answer: Whole) -> None:
        """Get ready to give that very answer."""

    def give(self, answer: Whole) -> None:
        """Answer it."""

    def wait(self, answer: Coroutine[Any, Any, Whole]) -> None:
        """Answer it with what comes of waiting."""


# Takes a request's body, and must not raise.
Again: TypeAlias = Callable[[bytes, Turn], None]


class Gone(Exception):
    """The client hung up before its request was whole."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of the request, or None."""
    for key, said in scope["headers"]:
        if key == name:
            text: str = said.decode("latin-1")
            return text
    return None


async def read_body(scope: Scope, receive: Receive, *, limit: int) -> bytes:
    """Return the whole body, or raise before more than *limit* bytes of it are kept."""
    for name, said in scope["headers"]:
        if name == b"content-length" and int(said) > limit:
            raise BodyTooLarge(limit=limit)
        if name == b"content-encoding" and said.lower() != b"identity":
            raise BodyEncoded("bodies are sent as they are, without content-encoding")
    # Usually all of it. Waiting for the first bytes is bounded by the connection itself, see ``connections``.
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body") and len(body) <= limit:
        message, body = await _rest(receive, body, limit)
    if message["type"] != "http.request":
        raise Gone
    return given_body(body, limit=limit)


def given_body(body: bytes, *, limit: int) -> bytes:
    """Return a body that is here already, or raise."""
    if len(body) > limit:
        raise BodyTooLarge(limit=limit)
    return body


async def _rest(receive: Receive, body: bytes, limit: int) -> tuple[Message, bytes]:
    pieces, size = [body], len(body)
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                piece: bytes = message.get("body", b"")
                pieces.append(piece)
                size += len(piece)
                if not message.get("more_body") or size > limit:
                    return message, b"".join(pieces)
    except TimeoutError:
        raise BodyTooSlow(f"the body was not whole after {BODY_SECONDS:g} s") from None


def whole_json(body: bytes, *, close: bool = False) -> Whole:
    """Answer with a JSON text."""
    return Whole(_OK, _JSON_ALONE, body, close)


def whole_problem(problem: Problem, *, close: bool = False) -> Whole:
    """Answer with problem details."""
    return Whole(problem.status, (_PROBLEM, *problem.headers()), orjson.dumps(problem.body()), close)


async def send_whole(scope: Scope, send: Send, answer: Whole) -> None:
    """Give an answer, by the server's quick way if it has one."""
    at_once = scope.get(WHOLE)
    if at_once is None or not at_once(answer):
        await _send(send, answer)


async def send_problem(send: Send, problem: Problem, *, close: bool = False) -> None:
    """Answer with problem details."""
    await _send(send, whole_problem(problem, close=close))


async def _send(send: Send, answer: Whole) -> None:
    headers = [*answer.headers, (b"content-length", str(len(answer.body)).encode())]
    if answer.close:
        headers.append(_CLOSE)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
