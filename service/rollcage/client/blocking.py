"""
The client for programs that wait: a thin transport over ``requests``.

``aio`` is its twin. What can be asked stands in neither of them.
"""

import random
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import httpx

from rollcage.client import requests
from rollcage.client.acts import Place
from rollcage.client.blocking_rollouts import Rollout
from rollcage.client.errors import ClientError
from rollcage.client.exchange import TIMES, answer, keywords, reaching, refusal, settings
from rollcage.client.models import Call
from rollcage.client.patience import USUAL, Patience, Tries
from rollcage.client.requests import Paged, Request, new_id
from rollcage.client.watched import Watched
from rollcage.client.watching import Event, Watch, watched

P = ParamSpec("P")
T = TypeVar("T")


def _asks(describe: Callable[P, Request[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(describe)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return client.send(describe(*args, **kwargs))

    return method


def _lists(describe: Callable[P, Paged[T]]) -> "Callable[Concatenate[Client, P], Iterator[T]]":
    @wraps(describe)
    def method(client: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        return client.each(describe(*args, **kwargs))

    return method


class Client:
    """
    A service, as one tenant sees it.

    Without *url* and *token* they come from ROLLCAGE_URL and ROLLCAGE_TOKEN.
    Threads may share a client; *connections* bounds how many requests it has in
    flight, and more wait for their turn.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        patience: Patience = USUAL,
        connections: int = 100,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], object] = time.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.url, headers = settings(url, token)
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=TIMES, limits=limits, transport=transport)
        self._patience, self._sleep, self._chance = patience, sleep, chance

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

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

    def rollout(self, environment: str, *, run: str = "default", rollout: str | None = None) -> Rollout:
        """Return a rollout to act in; nothing is sent before its first call."""
        return Rollout(self, Place(rollout or f"rollout-{new_id()}", environment, run))

    def each(self, paged: Paged[T]) -> Iterator[T]:
        """Yield a listing's items, asking for pages as they are needed."""
        cursor: str | None = None
        while True:
            page = self.send(paged.after(cursor))
            yield from page.items
            cursor = page.cursor
            if cursor is None:
                return

    def send(self, request: Request[T], upload: bytes | Path | None = None, patience: Patience | None = None) -> T:
        """Send a request, again where that is safe, and return what it answers."""

        def once() -> T:
            with ExitStack() as stack:
                content = stack.enter_context(upload.open("rb")) if isinstance(upload, Path) else upload
                return answer(request, self._http.request(**keywords(request), content=content))

        return self._patiently(request, once, patience or self._patience)

    def fetch(self, request: Request[bytes], target: Path) -> None:
        """Stream an answer into a file, which is there whole or not at all."""
        part = target.with_name(f".{target.name}.{new_id()}")

        def once() -> None:
            with self._opened(request) as response, part.open("wb") as file:
                for piece in response.iter_bytes():
                    file.write(piece)

        try:
            self._patiently(request, once, self._patience)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def watch(self, request: Request[Call]) -> Watched:
        """Make a call and watch it; its stream is taken up again where it breaks."""
        return Watched(request.body["call_id"], self._events(request), lambda: self.send(request))

    def _events(self, request: Request[Call]) -> Generator[Event]:
        watch, tries = Watch(), Tries(self._patience, request.again, self._chance)
        while True:
            try:
                with reaching(self.url), self._opened(watched(request)) as response:
                    watch.join()
                    for data in response.iter_bytes():
                        for event in watch.read(data):
                            tries.restart()
                            yield event
                            if isinstance(event, Call):
                                return
                raise watch.broken()
            except ClientError as error:
                self._sleep(tries.wait(error))

    @contextmanager
    def _opened(self, request: Request[Any]) -> Iterator[httpx.Response]:
        with self._http.stream(**keywords(request)) as response:
            if response.status_code != httpx.codes.OK:
                response.read()
                raise refusal(response)
            yield response

    def _patiently(self, request: Request[Any], once: Callable[[], T], patience: Patience) -> T:
        tries = Tries(patience, request.again, self._chance)
        while True:
            try:
                with reaching(self.url):
                    return once()
            except ClientError as error:
                self._sleep(tries.wait(error))
