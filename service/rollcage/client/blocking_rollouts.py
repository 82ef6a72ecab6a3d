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

P = ParamSpec("P")
T = TypeVar("T")


class Sender(Protocol):
    """What a rollout needs of its client."""

    def send(self, request: Request[T], upload: bytes | Path | None = None, patience: Patience | None = None) -> T:
        """Send a request, again where that is safe, and return what it answers."""

    def fetch(self, request: Request[bytes], target: Path) -> None:
        """Stream an answer into a file."""

    def each(self, paged: Paged[T]) -> Iterator[T]:
        """Yield a listing's items."""


def _acts(describe: Callable[Concatenate[Place, P], Request[T]]) -> "Callable[Concatenate[Rollout, P], T]":
    @wraps(describe)
    def method(rollout: "Rollout", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return rollout.client.send(describe(rollout.place, *args, **kwargs))

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
    grade = _acts(acts.grade_here)

    def finish(self) -> models.RolloutState:
        """End it, to be trained on; a verdict that stands already stays."""
        self.end = self.client.send(acts.finish(self.place))
        return self.end

    def abandon(self) -> models.RolloutState:
        """End it; nobody wants it any more."""
        self.end = self.client.send(requests.abandon(self.id))
        return self.end

    def state(self) -> models.RolloutState:
        """Return how it stands."""
        return self.client.send(requests.rollout_state(self.id))

    def verdict(self) -> models.VerdictReport:
        """Return its verdict, with the evidence."""
        return self.client.send(requests.verdict(self.id))

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
        return self.client.send(acts.upload(self.id, path), content)

    def download(self, path: str) -> bytes:
        """Read a file into memory."""
        return self.client.send(acts.download(self.id, path))

    def download_to(self, path: str, target: Path) -> None:
        """Read a file into one here, which is there whole or not at all."""
        self.client.fetch(acts.download(self.id, path), target)

    def upload_tree(self, path: str, directory: Path) -> models.TreeWritten:
        """Copy what is in a directory here into one there."""
        with packed(directory) as archive:
            return self.client.send(acts.upload_tree(self.id, path), archive)

    def download_tree(self, path: str, target: Path) -> int:
        """Copy files and directories from there into a directory here; links stay behind. Return how many came."""
        with temporary() as archive:
            self.client.fetch(acts.download(self.id, path, tree=True), archive)
            return unpack(archive, target)


class Session:
    """A shell of a rollout that keeps its directory and variables."""

    def __init__(self, rollout: Rollout, name: str) -> None:
        self.rollout = rollout
        self.name = name

    run = _runs(acts.session_run)
    interrupt = _runs(acts.session_interrupt)
    close = _runs(acts.session_close)
