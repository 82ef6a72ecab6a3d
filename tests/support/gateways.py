"""
Gateways for tests: put together from scripted or real parts, asked in process or served on a socket.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from prometheus_client import CollectorRegistry

from rollcage.gateway.admission import Admission
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits, Parts
from rollcage.gateway.serving import Serving, server
from rollcage.gateway.tenants import Directory, Quotas, Tenant, token_hash
from rollcage.store.pools import Counts
from rollcage.store.records import Page
from rollcage.telemetry.metrics import Metrics
from support.environments import environment
from support.scripted_use_cases import Scripted
from support.waiting import POLL, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from rollcage.core.environment import Environment
    from rollcage.gateway.exchange import Message
    from rollcage.gateway.front import Front
    from rollcage.gateway.ports import Pools, Records, UseCases
    from rollcage.gateway.serving import DrainingServer
    from rollcage.store.pools import Level
    from rollcage.store.records import Rollout
    from rollcage.store.rollouts import Run
    from rollcage.store.tallies import Tally

TOKEN = "ours-0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - made up
THEIRS = "theirs-0123456789abcdefghijklmnopqrstuvwxyz"
BEARER = {"authorization": f"Bearer {TOKEN}"}


# Any free port, and no waiting for load balancers that are not there.
LOCAL = Serving(host="127.0.0.1", port=0, linger=timedelta())


class NoRecords:
    """Records of nothing."""

    async def of_run(self, *_: Any, **__: Any) -> Page[Rollout]:
        return Page((), None)

    async def of_tenant(self, *_: Any, **__: Any) -> Page[Rollout]:
        return Page((), None)

    async def tallies(self, *_: Any, **__: Any) -> tuple[Tally, ...]:
        return ()

    async def runs(self, *_: Any, **__: Any) -> tuple[Run, ...]:
        return ()


class NoPools:
    """Pools in which nothing ever is."""

    async def counts(self, environment: str) -> Counts:
        assert environment
        return Counts(0, 0, 0, 0, 0, 0)

    async def levels(self) -> Mapping[str, Level] | None:
        return None


def parts(
    use_cases: UseCases | None = None,
    *,
    records: Records | None = None,
    pools: Pools | None = None,
    environments: Mapping[str, Environment] | None = None,
    limits: Limits | None = None,
    quotas: Quotas | None = None,
) -> Parts:
    """Return the parts of a gateway, scripted where nothing is given."""
    metrics = Metrics(CollectorRegistry())
    bounds = limits or Limits()
    ours = Tenant(name="ours", tokens=(token_hash(TOKEN),), quotas=quotas or Quotas())
    theirs = Tenant(name="theirs", tokens=(token_hash(THEIRS),))
    return Parts(
        use_cases=use_cases or Scripted(),
        records=records or NoRecords(),
        pools=pools or NoPools(),
        tenants=Directory.of((ours, theirs)),
        environments=environments or {"small": environment()},
        metrics=metrics,
        admission=Admission(most=bounds.in_flight_calls, metrics=metrics),
        limits=bounds,
    )


async def all_is_well() -> dict[str, bool]:
    """Find nothing missing."""
    return {"store": True, "keys": True}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> tuple[int, str]:
        """Status and code of a problem, for comparing at a glance."""
        assert self.headers["content-type"] == "application/problem+json", self
        return self.status, self.json()["code"]


class Caller:
    """Asks an application in process, one request after the other."""

    def __init__(self, app: Front) -> None:
        self.app = app

    async def __call__(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] = BEARER) -> Reply:
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        path, _, query = target.partition("?")
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        if body is not None:
            pairs.append((b"content-type", b"application/json"))
            pairs.append((b"content-length", str(len(content)).encode()))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": pairs,
            "server": ("test", 80),
            "client": ("test", 1),
        }
        requests: list[Message] = [{"type": "http.request", "body": content}]
        sent: list[Message] = []

        async def receive() -> Message:
            return requests.pop(0) if requests else await asyncio.get_running_loop().create_future()

        async def send(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, *rest = sent
        told = {name.decode(): value.decode() for name, value in start["headers"]}
        return Reply(start["status"], told, b"".join(message.get("body", b"") for message in rest))


@dataclass(frozen=True, slots=True)
class Served:
    """A gateway that listens on a port of this machine."""

    server: DrainingServer
    port: int

    def ask(self, method: str, target: str, body: Any = None, headers: Mapping[str, str] = BEARER) -> Reply:
        """Ask on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, target, json.dumps(body) if body is not None else None, dict(headers))
            answer = connection.getresponse()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()


@contextmanager
def served(made: Parts, serving: Serving = LOCAL) -> Iterator[Served]:
    """Serve a gateway from a thread of its own; it is stopped when the block is left."""
    running = server(
        gateway(made, checks=all_is_well),
        serving,
        admission=made.admission,
    )
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    until(lambda: running.started)
    try:
        yield Served(running, running.servers[0].sockets[0].getsockname()[1])
    finally:
        running.should_exit = True
        thread.join(timeout=60)
        assert not thread.is_alive()


@asynccontextmanager
async def listening(made: Parts, serving: Serving = LOCAL) -> AsyncIterator[str]:
    """Serve a gateway from the test's own loop, where its use cases live, and give its address."""
    running = server(gateway(made, checks=all_is_well), replace(serving, signals=False), admission=made.admission)
    task = asyncio.create_task(running.serve())
    while not running.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(POLL)
    try:
        yield f"http://127.0.0.1:{running.servers[0].sockets[0].getsockname()[1]}"
    finally:
        running.should_exit = True
        await task
