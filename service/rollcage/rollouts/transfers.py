"""
Stream files between a client and its rollout's sandbox; nothing is kept here.

A transfer that breaks off ends with a cut connection, never with a short but
complete answer. It is no call: it is not recorded, and says nothing about the
rollout's verdict.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

import aiohttp

from rollcage.core.errors import RolloutEnded
from rollcage.core.verdict_words import Cause, Word
from rollcage.rollouts.errors import FileRefused, SandboxUnreachable
from rollcage.rollouts.routes import Reach
from rollcage.wire.messages import ErrorCode, Refusal

_PIECE: Final = 64 * 1024

# The whole may take any time; it must begin, and must not stand still.
_TIMES: Final = aiohttp.ClientTimeout(total=None, connect=5, sock_connect=5, sock_read=30)

# The sandbox's own state, which the client may want to know; everything else is between us and the sandbox.
_CLIENTS_BUSINESS: Final = frozenset({ErrorCode.FILE_ERROR, ErrorCode.BAD_REQUEST, ErrorCode.NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Transfer:
    """What is asked of a sandbox."""

    method: str
    target: str
    path: str
    body: AsyncIterator[bytes] | None = None
    size: str | None = None


def way(address: str) -> tuple[str, aiohttp.BaseConnector]:
    """Return what to call a sandbox, and how to get there."""
    if not address.startswith("unix:"):
        return address.rstrip("/"), aiohttp.TCPConnector()
    path = address.removeprefix("unix:")
    return "http://toolserver", aiohttp.UnixConnector(path=f"\0{path[1:]}" if path.startswith("@") else path)


async def begun(stack: AsyncExitStack, reach: Reach, transfer: Transfer) -> aiohttp.ClientResponse:
    """Return the sandbox's answer, its body still to be read; it is given up when *stack* is closed."""
    headers = {**reach.headers, **({"Content-Length": transfer.size} if transfer.size else {})}
    host, connector = way(reach.address)
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=_TIMES))
    try:
        response = await stack.enter_async_context(
            session.request(
                transfer.method,
                f"{host}{transfer.target}",
                params={"path": transfer.path},
                data=transfer.body,
                headers=headers,
                skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
            )
        )
        if response.status != HTTPStatus.OK:
            raise _refusal(await response.read())
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise SandboxUnreachable("the sandbox did not take the transfer") from error
    return response


async def pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body as it comes; what cannot be completed raises."""
    async for piece in response.content.iter_chunked(_PIECE):
        yield piece


def size_of(response: aiohttp.ClientResponse) -> Mapping[str, str]:
    """Return the header that says how large the body is, if that is known."""
    return {"content-length": str(response.content_length)} if response.content_length is not None else {}


def _refusal(body: bytes) -> Exception:
    try:
        told: Any = Refusal.model_validate_json(body)
    except ValueError:
        return SandboxUnreachable("the sandbox's answer was none")
    if told.code in _CLIENTS_BUSINESS:
        return FileRefused(told.message)
    if told.code == ErrorCode.SEALED:
        return RolloutEnded(verdict=Word.TRAINABLE, cause=Cause.FINISHED)
    return SandboxUnreachable(f"the sandbox refused the transfer: {told.code}")
