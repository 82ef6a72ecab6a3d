"""The client against the service's own description: nothing under ``/v1`` may be out of its reach."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rollcage.client import AsyncClient, AsyncRollout, AsyncSession, AsyncWatched, Client, Rollout, Session, Watched
from rollcage.client.errors import ServiceError
from rollcage.gateway.app import gateway
from support.gateways import Caller, all_is_well, parts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Why the client leaves an operation out.
LEFT_OUT = {("GET", "/v1/rollouts/{rollout}/trajectory.jsonl"): "trajectory() yields the same steps, page by page"}

CLIENT: dict[str, Callable[[Client], Any]] = {
    "environments": lambda client: client.environments(),
    "environment": lambda client: client.environment("e"),
    "tools": lambda client: client.tools("e"),
    "rollouts": lambda client: list(client.rollouts()),
    "tallied": lambda client: list(client.tallied("run")),
    "rollout_state": lambda client: client.rollout_state("r"),
    "verdict": lambda client: client.verdict("r"),
    "trajectory": lambda client: list(client.trajectory("r")),
    "abandon": lambda client: client.abandon("r"),
    "runs": lambda client: client.runs(),
    "health": lambda client: client.health("run"),
    "reserve": lambda client: client.reserve("run", "e", 1),
    "pools": lambda client: client.pools(),
    "grade": lambda client: client.grade("r"),
    "score": lambda client: client.score("r"),
}
ROLLOUT: dict[str, Callable[[Rollout, Path], Any]] = {
    "call": lambda rollout, _: rollout.call("shell"),
    "watch": lambda rollout, _: list(rollout.watch("shell")),
    "finish": lambda rollout, _: rollout.finish(),
    "upload": lambda rollout, _: rollout.upload("p", b""),
    "download": lambda rollout, _: rollout.download("p"),
    "upload_tree": lambda rollout, here: rollout.upload_tree("p", here),
    "download_tree": lambda rollout, here: rollout.download_tree("p", here),
}


def asked_by_the_client(here: Path) -> set[tuple[str, str]]:
    asked: set[tuple[str, str]] = set()

    def refuse(request: httpx.Request) -> httpx.Response:
        asked.add((request.method, request.url.path))
        return httpx.Response(404, json={"code": "no_such_route", "detail": "", "status": 404})

    with Client("http://service", "t", transport=httpx.MockTransport(refuse)) as client:
        for ask in CLIENT.values():
            with suppress(ServiceError):
                ask(client)
        for act in ROLLOUT.values():
            with suppress(ServiceError):
                act(client.rollout("e", rollout="r"), here)
    return asked


async def described() -> set[tuple[str, str]]:
    paths = (await Caller(gateway(parts(), checks=all_is_well))("GET", "/openapi.json")).json()["paths"]
    return {(method.upper(), path) for path, item in paths.items() if path.startswith("/v1/") for method in item}


def fits(template: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path) is not None


async def test_every_operation_has_a_method_or_a_reason(tmp_path: Path) -> None:
    asked = asked_by_the_client(tmp_path)
    operations = await described()
    reached = {(method, path) for method, path in operations if any(m == method and fits(path, p) for m, p in asked)}
    assert operations - reached == set(LEFT_OUT)


async def test_the_client_asks_for_nothing_that_is_not_described(tmp_path: Path) -> None:
    operations = await described()
    unknown = {
        (method, path)
        for method, path in asked_by_the_client(tmp_path)
        if not any(m == method and fits(template, path) for m, template in operations)
    }
    assert unknown == set()


@pytest.mark.parametrize(
    ("waits", "loops"),
    [(Client, AsyncClient), (Rollout, AsyncRollout), (Session, AsyncSession), (Watched, AsyncWatched)],
    ids=lambda kind: kind.__name__,
)
def test_both_clients_can_do_the_same(waits: type, loops: type) -> None:
    def public(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert public(waits) == public(loops)
