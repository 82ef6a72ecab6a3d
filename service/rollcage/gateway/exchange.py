"""
Read a request and write an answer in plain ASGI, for routes where a framework would cost more than the work.

Only bytes and headers; what they mean is for the dialects.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import orjson

from rollcage.gateway.errors import BodyEncoded, BodyTooLarge, BodyTooSlow
from rollcage.gateway.problems import MEDIA_TYPE, Problem

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Iterable[tuple[bytes, bytes]]

# A trainer sends a megabyte in well under a second; whoever takes this long does not mean to finish.
BODY_SECONDS: Final = 30.0

# Where a scope has the server's quick way to give a whole answer: status, headers, body; whether it was taken.
WHOLE: Final = "rollcage.whole"

_JSON: Final = (b"content-type", b"application/json")
_PROBLEM: Final = (b"content-type", MEDIA_TYPE.encode())
_CLOSE: Final = (b"connection", b"close")


class Gone(Exception):
    """The client hung up before its request was whole."""


def header(scope: Scope, name: bytes) -> str | None:
    """Return a header of the request, or None."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


async def read_body(scope: Scope, receive: Receive, *, limit: int) -> bytes:
    """Return the whole body, or raise before more than *limit* bytes of it are kept."""
    for name, value in scope["headers"]:
        if name == b"content-length" and int(value) > limit:
            raise BodyTooLarge(limit=limit)
        if name == b"content-encoding" and value.lower() != b"identity":
            raise BodyEncoded("bodies are sent as they are, without content-encoding")
    # Usually all of it. Waiting for the first bytes is bounded by the connection itself, see ``connections``.
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body") and len(body) <= limit:
        message, body = await _rest(receive, body, limit)
    if message["type"] != "http.request":
        raise Gone
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


async def send_json(scope: Scope, send: Send, body: bytes, *, close: bool = False) -> None:
    """Answer with a JSON text."""
    at_once = scope.get(WHOLE)
    if close or at_once is None or not at_once(HTTPStatus.OK, (_JSON,), body):
        await _send(send, HTTPStatus.OK, body, (_JSON,), close=close)


async def send_problem(send: Send, problem: Problem, *, close: bool = False) -> None:
    """Answer with problem details."""
    await _send(send, problem.status, orjson.dumps(problem.body()), (_PROBLEM, *problem.headers()), close=close)


async def _send(send: Send, status: int, body: bytes, headers: Headers, *, close: bool) -> None:
    all_headers = [*headers, (b"content-length", str(len(body)).encode())]
    if close:
        all_headers.append(_CLOSE)
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": body})
