"""
A rollout and its sessions, for programs that wait; ``aio_rollouts`` is its twin.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, Self, TypeVar

from rollcage.client import acts, models, requests
from rollcage.client.acts import Place
from rollcage.client.archives import packed, temporary, unpack
from rollcage.client.errors import ClientError
from rollcage.client.patience import ONCE, Patience
from rollcage.client.requests import Paged, Request, new_id
from rollcage.client.watched import Watched

P = ParamSpec("P")
T = TypeVar("T")


class Sender(Protocol):
    """What a rollout needs of its client."""

    def send(self, request: Request[T], upload: bytes | Path | None = None, patience: Patience | None = None) -> T:
        """Send a request, again where that is safe, and return what it answers."""

    def fetch(self, request: Request[bytes], target: Path) -> None:
        """Stream an answer into a file."""

    def watch(self, request: Request[models.Call]) -> Watched:
        """Make a call and watch it."""

    def each(self, paged: Paged[T]) -> Iterator[T]:
        """Yield a listing's items."""


def _acts(describe: Callable[Concatenate[Place, P], Request[T]]) -> "Callable[Concatenate[Rollout, P], T]":
    @wraps(describe)
    def method(rollout: "Rollout", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return rollout.client.send(describe(rollout.place, *args, **kwargs))

    return method


def _watches(
    describe: Callable[Concatenate[Place, P], Request[models.Call]],
) -> "Callable[Concatenate[Rollout, P], Watched]":
    @wraps(describe)
    def method(rollout: "Rollout", /, *args: P.args, **kwargs: P.kwargs) -> Watched:
        return rollout.client.watch(describe(rollout.place, *args, **kwargs))

    return method


def _runs(describe: Callable[Concatenate[Place, str, P], Request[T]]) -> "Callable[Concatenate[Session, P], T]":
    @wraps(describe)
    def method(session: "Session", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return session.rollout.client.send(describe(session.rollout.place, session.name, *args, **kwargs))

    return method


class Rollout:
    """
    One rollout; used in a ``with`` block it ends with it.

    Left normally it is finished, left by an exception it is abandoned, so that
    half a trajectory is not trained on. *end* then says how it stands: look at
    its verdict before using anything of it.
    """

    def __init__(self, client: Sender, place: Place) -> None:
        self.client = client
        self.place = place
        self.end: models.RolloutState | None = None

    @property
    def id(self) -> str:
        """The rollout's id."""
        return self.place.rollout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if self.end is not None:
            return
        if error is None:
            self.finish()
            return
        # The first error matters more; a rollout that never began has nothing to abandon,
        # and one that could not be told to end is ended as silent.
        with suppress(ClientError):
            self.end = self.client.send(requests.abandon(self.id), patience=ONCE)

    call = _acts(acts.call)
    shell = _acts(acts.shell)
    watch = _watches(acts.call)
    watch_shell = _watches(acts.shell)
    grade = _acts(acts.grade_here)
    state = _acts(acts.state)
    verdict = _acts(acts.verdict)
    download = _acts(acts.download)

    def finish(self) -> models.RolloutState:
        """End it, to be trained on; a verdict that stands already stays."""
        self.end = self.client.send(acts.finish(self.place))
        return self.end

    def abandon(self) -> models.RolloutState:
        """End it; nobody wants it any more."""
        self.end = self.client.send(requests.abandon(self.id))
        return self.end

    def trajectory(self) -> Iterator[models.Step]:
        """Return its calls in the order in which they began."""
        return self.client.each(requests.trajectory(self.id))

    @contextmanager
    def session(self, *, workdir: str | None = None, env: Mapping[str, str] | None = None) -> "Iterator[Session]":
        """Lend a shell that keeps its directory and variables; it is closed afterwards."""
        session = Session(self, f"s{new_id()}")
        self.client.send(acts.session_create(self.place, session.name, workdir=workdir, env=env))
        try:
            yield session
        finally:
            with suppress(ClientError):
                session.close()

    def upload(self, path: str, content: bytes | Path) -> models.FileWritten:
        """Write a file, from memory or from a file here."""
        return self.client.send(acts.upload(self.place, path), content)

    def download_to(self, path: str, target: Path) -> None:
        """Read a file into one here, which is there whole or not at all."""
        self.client.fetch(acts.download(self.place, path), target)

    def upload_tree(self, path: str, directory: Path) -> models.TreeWritten:
        """Copy what is in a directory here into one there."""
        with packed(directory) as archive:
            return self.client.send(acts.upload_tree(self.place, path), archive)

    def download_tree(self, path: str, target: Path) -> int:
        """Copy files and directories from there into a directory here; links stay behind. Return how many came."""
        with temporary() as archive:
            self.client.fetch(acts.download_tree(self.place, path), archive)
            return unpack(archive, target)


class Session:
    """A shell of a rollout that keeps its directory and variables."""

    def __init__(self, rollout: Rollout, name: str) -> None:
        self.rollout = rollout
        self.name = name

    run = _runs(acts.session_run)

    def watch(self, command: str, *, timeout_ms: int | None = None, call_id: str | None = None) -> Watched:
        """Run one command and watch it."""
        request = acts.session_run(self.rollout.place, self.name, command, timeout_ms=timeout_ms, call_id=call_id)
        return self.rollout.client.watch(request)

    interrupt = _runs(acts.session_interrupt)
    close = _runs(acts.session_close)
