"""
A rollout and its sessions, for programs with an event loop; ``blocking_rollouts`` is its twin.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar

from rollcage.client import acts, models, requests
from rollcage.client.acts import Place
from rollcage.client.archives import packed, temporary, unpack
from rollcage.client.errors import ClientError
from rollcage.client.patience import ONCE, Patience
from rollcage.client.requests import Paged, Request, new_id
from rollcage.client.watched import AsyncWatched

P = ParamSpec("P")
T = TypeVar("T")
Later = Coroutine[Any, Any, T]


class AsyncSender(Protocol):
    """What a rollout needs of its client."""

    async def send(
        self, request: Request[T], upload: bytes | Path | None = None, patience: Patience | None = None
    ) -> T:
        """Send a request, again where that is safe, and return what it answers."""

    async def fetch(self, request: Request[bytes], target: Path) -> None:
        """Stream an answer into a file."""

    def watch(self, request: Request[models.Call]) -> AsyncWatched:
        """Make a call and watch it."""

    def each(self, paged: Paged[T]) -> AsyncIterator[T]:
        """Yield a listing's items."""


def _acts(describe: Callable[Concatenate[Place, P], Request[T]]) -> "Callable[Concatenate[AsyncRollout, P], Later[T]]":
    @wraps(describe)
    async def method(rollout: "AsyncRollout", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await rollout.client.send(describe(rollout.place, *args, **kwargs))

    return method


def _watches(
    describe: Callable[Concatenate[Place, P], Request[models.Call]],
) -> "Callable[Concatenate[AsyncRollout, P], AsyncWatched]":
    @wraps(describe)
    def method(rollout: "AsyncRollout", /, *args: P.args, **kwargs: P.kwargs) -> AsyncWatched:
        return rollout.client.watch(describe(rollout.place, *args, **kwargs))

    return method


def _runs(
    describe: Callable[Concatenate[Place, str, P], Request[T]],
) -> "Callable[Concatenate[AsyncSession, P], Later[T]]":
    @wraps(describe)
    async def method(session: "AsyncSession", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await session.rollout.client.send(describe(session.rollout.place, session.name, *args, **kwargs))

    return method


class AsyncRollout:
    """
    One rollout; used in an ``async with`` block it ends with it.

    Left normally it is finished, left by an exception it is abandoned, so that
    half a trajectory is not trained on. *end* then says how it stands: look at
    its verdict before using anything of it.
    """

    def __init__(self, client: AsyncSender, place: Place) -> None:
        self.client = client
        self.place = place
        self.end: models.RolloutState | None = None

    @property
    def id(self) -> str:
        """The rollout's id."""
        return self.place.rollout

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self.end is not None:
            return
        if error is None:
            await self.finish()
            return
        # The first error matters more; a rollout that never began has nothing to abandon,
        # and one that could not be told to end is ended as silent.
        with suppress(ClientError):
            self.end = await self.client.send(requests.abandon(self.id), patience=ONCE)

    call = _acts(acts.call)
    shell = _acts(acts.shell)
    watch = _watches(acts.call)
    watch_shell = _watches(acts.shell)
    grade = _acts(acts.grade_here)
    state = _acts(acts.state)
    verdict = _acts(acts.verdict)
    download = _acts(acts.download)

    async def finish(self) -> models.RolloutState:
        """End it, to be trained on; a verdict that stands already stays."""
        self.end = await self.client.send(acts.finish(self.place))
        return self.end

    async def abandon(self) -> models.RolloutState:
        """End it; nobody wants it any more."""
        self.end = await self.client.send(requests.abandon(self.id))
        return self.end

    def trajectory(self) -> AsyncIterator[models.Step]:
        """Return its calls in the order in which they began."""
        return self.client.each(requests.trajectory(self.id))

    @asynccontextmanager
    async def session(
        self, *, workdir: str | None = None, env: Mapping[str, str] | None = None
    ) -> "AsyncIterator[AsyncSession]":
        """Lend a shell that keeps its directory and variables; it is closed afterwards."""
        session = AsyncSession(self, f"s{new_id()}")
        await self.client.send(acts.session_create(self.place, session.name, workdir=workdir, env=env))
        try:
            yield session
        finally:
            with suppress(ClientError):
                await session.close()

    async def upload(self, path: str, content: bytes | Path) -> models.FileWritten:
        """Write a file, from memory or from a file here."""
        return await self.client.send(acts.upload(self.place, path), content)

    async def download_to(self, path: str, target: Path) -> None:
        """Read a file into one here, which is there whole or not at all."""
        await self.client.fetch(acts.download(self.place, path), target)

    async def upload_tree(self, path: str, directory: Path) -> models.TreeWritten:
        """Copy what is in a directory here into one there."""
        with ExitStack() as stack:
            archive = await asyncio.to_thread(stack.enter_context, packed(directory))
            return await self.client.send(acts.upload_tree(self.place, path), archive)

    async def download_tree(self, path: str, target: Path) -> int:
        """Copy files and directories from there into a directory here; links stay behind. Return how many came."""
        with temporary() as archive:
            await self.client.fetch(acts.download_tree(self.place, path), archive)
            return await asyncio.to_thread(unpack, archive, target)


class AsyncSession:
    """A shell of a rollout that keeps its directory and variables."""

    def __init__(self, rollout: AsyncRollout, name: str) -> None:
        self.rollout = rollout
        self.name = name

    run = _runs(acts.session_run)

    def watch(self, command: str, *, timeout_ms: int | None = None, call_id: str | None = None) -> AsyncWatched:
        """Run one command and watch it."""
        request = acts.session_run(self.rollout.place, self.name, command, timeout_ms=timeout_ms, call_id=call_id)
        return self.rollout.client.watch(request)

    interrupt = _runs(acts.session_interrupt)
    close = _runs(acts.session_close)
