"""
The client for programs with an event loop: a thin transport over ``requests``.

``blocking`` is its twin. What can be asked stands in neither of them.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import ExitStack, asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import IO, Any, Concatenate, Final, ParamSpec, Self, TypeVar

import httpx

from rollcage.client import requests
from rollcage.client.acts import Place
from rollcage.client.aio_rollouts import AsyncRollout
from rollcage.client.errors import ClientError
from rollcage.client.exchange import TIMES, answer, keywords, reaching, refusal, settings
from rollcage.client.models import Call
from rollcage.client.patience import USUAL, Patience, Tries
from rollcage.client.requests import Paged, Request, new_id
from rollcage.client.watched import AsyncWatched
from rollcage.client.watching import Event, Watch, watched

P = ParamSpec("P")
T = TypeVar("T")
Later = Coroutine[Any, Any, T]

_PIECE: Final = 64 * 1024


def _asks(describe: Callable[P, Request[T]]) -> "Callable[Concatenate[AsyncClient, P], Later[T]]":
    @wraps(describe)
    async def method(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await client.send(describe(*args, **kwargs))

    return method


def _lists(describe: Callable[P, Paged[T]]) -> "Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]":
    @wraps(describe)
    def method(client: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return client.each(describe(*args, **kwargs))

    return method


class AsyncClient:
    """
    A service, as one tenant sees it.

    Without *url* and *token* they come from ROLLCAGE_URL and ROLLCAGE_TOKEN.
    *connections* bounds how many requests it has in flight, and more wait for
    their turn.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience: Patience = USUAL,
        connections: int = 100,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.url, headers = settings(url, token)
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=headers, timeout=TIMES, limits=limits, transport=transport
        )
        self._patience, self._sleep, self._chance = patience, sleep, chance

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    environments = _asks(requests.environments)
    environment = _asks(requests.environment)
    tools = _asks(requests.tools)
    rollouts = _lists(requests.rollouts)
    tallied = _lists(requests.tallied)
    rollout_state = _asks(requests.rollout_state)
    verdict = _asks(requests.verdict)
    trajectory = _lists(requests.trajectory)
    abandon = _asks(requests.abandon)
    runs = _asks(requests.runs)
    health = _asks(requests.health)
    reserve = _asks(requests.reserve)
    pools = _asks(requests.pools)
    readiness = _asks(requests.readiness)
    grade = _asks(requests.grade)
    score = _asks(requests.score)

    def rollout(self, environment: str, *, run: str = "default", rollout: str | None = None) -> AsyncRollout:
        """Return a rollout to act in; nothing is sent before its first call."""
        return AsyncRollout(self, Place(rollout or f"rollout-{new_id()}", environment, run))

    async def each(self, paged: Paged[T]) -> AsyncIterator[T]:
        """Yield a listing's items, asking for pages as they are needed."""
        cursor: str | None = None
        while True:
            page = await self.send(paged.after(cursor))
            for item in page.items:
                yield item
            cursor = page.cursor
            if cursor is None:
                return

    async def send(
        self, request: Request[T], upload: bytes | Path | None = None, patience: Patience | None = None
    ) -> T:
        """Send a request, again where that is safe, and return what it answers."""

        async def once() -> T:
            with ExitStack() as stack:
                return answer(request, await self._http.request(**keywords(request), **_content(stack, upload)))

        return await self._patiently(request, once, patience or self._patience)

    async def fetch(self, request: Request[bytes], target: Path) -> None:
        """Stream an answer into a file, which is there whole or not at all."""
        part = target.with_name(f".{target.name}.{new_id()}")

        async def once() -> None:
            async with self._opened(request) as response:
                with part.open("wb") as file:
                    async for piece in response.aiter_bytes():
                        await asyncio.to_thread(file.write, piece)

        try:
            await self._patiently(request, once, self._patience)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def watch(self, request: Request[Call]) -> AsyncWatched:
        """Make a call and watch it; its stream is taken up again where it breaks."""
        return AsyncWatched(request.body["call_id"], self._events(request), lambda: self.send(request))

    async def _events(self, request: Request[Call]) -> AsyncGenerator[Event]:
        watch, tries = Watch(), Tries(self._patience, request.again, self._chance)
        while True:
            try:
                with reaching(self.url):
                    async with self._opened(watched(request)) as response:
                        watch.join()
                        async for data in response.aiter_bytes():
                            for event in watch.read(data):
                                tries.restart()
                                yield event
                                if isinstance(event, Call):
                                    return
                raise watch.broken()
            except ClientError as error:
                await self._sleep(tries.wait(error))

    @asynccontextmanager
    async def _opened(self, request: Request[Any]) -> AsyncIterator[httpx.Response]:
        async with self._http.stream(**keywords(request)) as response:
            if response.status_code != httpx.codes.OK:
                await response.aread()
                raise refusal(response)
            yield response

    async def _patiently(self, request: Request[Any], once: Callable[[], Awaitable[T]], patience: Patience) -> T:
        tries = Tries(patience, request.again, self._chance)
        while True:
            try:
                with reaching(self.url):
                    return await once()
            except ClientError as error:
                await self._sleep(tries.wait(error))


def _content(stack: ExitStack, upload: bytes | Path | None) -> dict[str, Any]:
    if not isinstance(upload, Path):
        return {"content": upload}
    file = stack.enter_context(upload.open("rb"))
    return {"content": _pieces(file), "headers": {"content-length": str(upload.stat().st_size)}}


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE):
        yield piece
