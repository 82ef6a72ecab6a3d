"""
Everything that is done inside a rollout, described once, as ``requests`` does for the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rollcage.client import models, requests
from rollcage.client.patience import Again
from rollcage.client.requests import Request, given, new_id, rollout_path


@dataclass(frozen=True, slots=True)
class Place:
    """Which rollout is meant, and where it belongs."""

    rollout: str
    environment: str
    run: str


def call(
    place: Place, tool: str, arguments: Mapping[str, Any] | None = None, *, call_id: str | None = None
) -> Request[models.Call]:
    """Run a tool once; an id is made up if none is given, and kept over every retry."""
    body = {
        "environment": place.environment,
        "run": place.run,
        "tool": tool,
        "arguments": dict(arguments or {}),
        "call_id": call_id or new_id(),
    }
    return Request("POST", f"{rollout_path(place.rollout)}/calls", models.Call.model_validate_json, body=body)


def shell(
    place: Place,
    command: str,
    *,
    timeout_ms: int | None = None,
    workdir: str | None = None,
    env: Mapping[str, str] | None = None,
    call_id: str | None = None,
) -> Request[models.Call]:
    """Run one command."""
    return call(
        place, "shell", given(command=command, timeout_ms=timeout_ms, workdir=workdir, env=env), call_id=call_id
    )


def session_create(
    place: Place, session: str, *, workdir: str | None = None, env: Mapping[str, str] | None = None
) -> Request[models.Call]:
    """Open a shell that keeps its directory and variables."""
    return call(place, "session_create", given(session=session, workdir=workdir, env=env))


def session_run(
    place: Place, session: str, command: str, *, timeout_ms: int | None = None, call_id: str | None = None
) -> Request[models.Call]:
    """Run one command in a session."""
    arguments = given(session=session, command=command, timeout_ms=timeout_ms)
    return call(place, "session_run", arguments, call_id=call_id)


def session_interrupt(place: Place, session: str) -> Request[models.Call]:
    """Interrupt what runs in a session, as Ctrl-C does."""
    return call(place, "session_interrupt", {"session": session})


def session_close(place: Place, session: str) -> Request[models.Call]:
    """Close a session and end what runs in it."""
    return call(place, "session_close", {"session": session})


def grade_here(
    place: Place, *, text: str = "", value: Any = None, item: Mapping[str, Any] | None = None
) -> Request[models.Score]:
    """Ask for the rollout's score, which ends it: of its final answer, to a dataset *item*."""
    return requests.grade(
        place.rollout, text=text, value=value, item=item, environment=place.environment, run=place.run
    )


def finish(place: Place) -> Request[models.RolloutState]:
    """End the rollout, to be trained on; a verdict that stands already stays."""
    body = {"environment": place.environment, "run": place.run}
    return Request("POST", f"{rollout_path(place.rollout)}/finish", models.RolloutState.model_validate_json, body=body)


def state(place: Place) -> Request[models.RolloutState]:
    """Return how the rollout stands."""
    return requests.rollout_state(place.rollout)


def verdict(place: Place) -> Request[models.VerdictReport]:
    """Return the rollout's verdict, with the evidence."""
    return requests.verdict(place.rollout)


def download(place: Place, path: str) -> Request[bytes]:
    """Read a file."""
    return Request("GET", f"{rollout_path(place.rollout)}/files", bytes, {"path": path})


def download_tree(place: Place, path: str) -> Request[bytes]:
    """Read a directory, as a tar archive."""
    return Request("GET", f"{rollout_path(place.rollout)}/tree", bytes, {"path": path})


def upload(place: Place, path: str) -> Request[models.FileWritten]:
    """Replace a file; not sent twice, since the sandbox may have changed the first one by then."""
    target, read = f"{rollout_path(place.rollout)}/files", models.FileWritten.model_validate_json
    return Request("PUT", target, read, {"path": path}, again=Again.UNSENT)


def upload_tree(place: Place, path: str) -> Request[models.TreeWritten]:
    """Unpack a tar archive into a directory."""
    target, read = f"{rollout_path(place.rollout)}/tree", models.TreeWritten.model_validate_json
    return Request("PUT", target, read, {"path": path}, again=Again.UNSENT)
