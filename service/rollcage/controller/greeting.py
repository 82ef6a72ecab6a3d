"""
Ask toolservers about themselves: whether they are ready, and whom they serve.

Signed for inspection only, so that asking binds nothing. What the answer means
is decided by whoever asked.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

import aiohttp
from pydantic import ValidationError

from rollcage.core.errors import RollcageError
from rollcage.wire.messages import State
from rollcage.wire.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.wire.tokens import Signer

# A starved node answers late; whoever asks may ask again.
_ANSWER: Final = aiohttp.ClientTimeout(total=5, sock_connect=2)
_TOKEN_LIFETIME: Final = timedelta(minutes=10)
# A few at once: greeting competes with the starts themselves for the same processors.
_AT_ONCE: Final = 32


class Unreachable(RollcageError):
    """The toolserver gave no account of itself; the sandbox may be starting, busy, cut off or dead."""

    code = "toolserver_unreachable"


class Greeter(Protocol):
    """Whoever can ask a toolserver."""

    async def state(self, name: str, address: str) -> State:
        """Return a toolserver's account of itself, or raise Unreachable."""
        ...


class HttpGreeter:
    """Asks toolservers, over TCP or a socket file."""

    def __init__(self, signer: Signer, session: aiohttp.ClientSession) -> None:
        self._signer = signer
        self._session = session
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def state(self, name: str, address: str) -> State:
        """Return a toolserver's account of itself, or raise Unreachable."""
        header = self._signer.authorization(
            sandbox=name, rollout="", scope=Scope.INSPECT, now=datetime.now(UTC), lifetime=_TOKEN_LIFETIME
        )
        async with self._turns:
            try:
                async with (
                    self._reach(address) as (session, base),
                    session.get(f"{base}/v1/state", headers={"Authorization": header}, timeout=_ANSWER) as answer,
                ):
                    text = await answer.read()
                if answer.status != HTTPStatus.OK:
                    raise Unreachable(f"{name} answered {answer.status}: {text[:200]!r}")
                return State.model_validate_json(text)
            except (aiohttp.ClientError, TimeoutError, OSError, ValidationError) as error:
                raise Unreachable(f"{name}: {type(error).__name__} {error}") from error

    @asynccontextmanager
    async def _reach(self, address: str) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
        path = address.removeprefix("unix:")
        if path == address:
            yield self._session, address
            return
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(path)) as session:
            yield session, "http://toolserver"


@asynccontextmanager
async def greeter(signer: Signer) -> AsyncIterator[HttpGreeter]:
    """Lend a greeter; it keeps no connection, since each toolserver is asked once or twice in its life."""
    connector = aiohttp.TCPConnector(limit=_AT_ONCE, force_close=True)
    async with aiohttp.ClientSession(connector=connector) as session:
        yield HttpGreeter(signer, session)
