"""
Put the whole service together on one machine: Redis, controller and gateway in one process, local sandboxes.

For trying things; what it stores ends with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from prometheus_client import CollectorRegistry

from rollcage.controller.greeting import greeter
from rollcage.controller.service import alone, serve
from rollcage.core.errors import RollcageError
from rollcage.gateway.serving import Serving
from rollcage.gateway.tenants import token_hash
from rollcage.grading.workers import WorkerSettings
from rollcage.sandboxes.local.environments import GivenRecipes
from rollcage.sandboxes.local.source import LocalSettings, local_source
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings as StoreSettings
from rollcage.store.store import open_store
from rollcage.telemetry.metrics import Metrics
from rollcage.wire.keyring import Keyring
from rollcage.wire.tokens import Signer
from rollcage.wiring.gateway import assembled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from rollcage.core.environment import Environment
    from rollcage.gateway.serving import DrainingServer
    from rollcage.sandboxes.local.source import LocalSource
    from rollcage.store.store import Store

TENANT: Final = "laptop"

# This machine only: a token is no reason to let a network in.
_HOST: Final = "127.0.0.1"
_USUAL_PORT: Final = 8080
# Whoever presses Ctrl-C does not want to wait for a call that takes minutes.
_DRAIN: Final = timedelta(seconds=2)
# A hundred times what it takes on an idle machine.
_READY_SECONDS: Final = 60.0
_LOOK_AGAIN: Final = 0.02


class PortTaken(RollcageError):
    """The port cannot be listened on; nothing was started."""

    code = "port_taken"


class NotReady(RollcageError):
    """The service did not come up; nothing of it is left."""

    code = "not_ready"


@dataclass(frozen=True, slots=True)
class LaptopSettings:
    """What the service on a laptop is told."""

    environments: Mapping[str, Environment]
    toolserver: Path
    token: str
    """What trainers and people come in with."""
    port: int | None = None
    """The usual one or, if that is taken, a free one unless given; any free one if 0."""
    unsafe_no_isolation: bool = False
    graders: tuple[Path, ...] = ()
    """Directories in which graders' modules are found, besides what is installed."""


@dataclass(frozen=True, slots=True)
class Laptop:
    """A service that runs."""

    url: str
    token: str
    environments: Mapping[str, Environment]
    source: LocalSource
    store: Store


@asynccontextmanager
async def laptop(settings: LaptopSettings) -> AsyncIterator[Laptop]:
    """Run the service until the block is left; then nothing of it is left either."""
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(_listener(settings.port))
        redis = await stack.enter_async_context(running(ServerConfig(find_executable())))
        store = await stack.enter_async_context(open_store(StoreSettings(redis.url)))
        keyring = Keyring(Signer("laptop", Ed25519PrivateKey.generate()))
        metrics = Metrics(CollectorRegistry())
        source = await stack.enter_async_context(
            local_source(
                LocalSettings(
                    settings.toolserver,
                    json.dumps(keyring.public_keys),
                    unsafe_no_isolation=settings.unsafe_no_isolation,
                )
            )
        )
        greeting = await stack.enter_async_context(greeter(keyring.signer))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        controlling = tasks.create_task(
            serve(
                source=source,
                recipes=GivenRecipes(settings.environments),
                store=store,
                greeter=greeting,
                metrics=metrics,
                election=alone(store),
            )
        )
        stack.callback(controlling.cancel)
        gateway = await stack.enter_async_context(
            assembled(
                store,
                keyring.signer,
                tenants=stack.enter_context(_tenants(settings.token)),
                metrics=metrics,
                serving=Serving(linger=timedelta(0), drain=_DRAIN, signals=False),
                graders=WorkerSettings(paths=settings.graders, at_once=os.cpu_count() or 1),
            )
        )
        serving = tasks.create_task(gateway.serve(sockets=[listener]))
        stack.push_async_callback(_stopped, gateway, serving)
        url = f"http://{_HOST}:{listener.getsockname()[1]}"
        await _ready(url)
        yield Laptop(url, settings.token, settings.environments, source, store)


async def _stopped(gateway: DrainingServer, serving: asyncio.Task[None]) -> None:
    gateway.should_exit = True
    await asyncio.wait({serving})


async def _ready(url: str) -> None:
    try:
        async with asyncio.timeout(_READY_SECONDS), httpx.AsyncClient(base_url=url, trust_env=False) as client:
            while not await _says_yes(client):  # noqa: ASYNC110 - asked as everybody would ask
                await asyncio.sleep(_LOOK_AGAIN)
    except TimeoutError as error:
        raise NotReady(f"the service did not become ready in {_READY_SECONDS:g} s") from error


async def _says_yes(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/readyz")).is_success
    except httpx.TransportError:
        return False


def _listener(port: int | None) -> socket.socket:
    try:
        return socket.create_server((_HOST, _USUAL_PORT if port is None else port))
    except OSError as error:
        if port is None:
            return socket.create_server((_HOST, 0))
        why = os.strerror(error.errno) if error.errno else str(error)
        raise PortTaken(f"cannot listen on port {port}: {why}; give another --port, or none") from error


@contextmanager
def _tenants(token: str) -> Iterator[Path]:
    """Lend a tenants file that has no name, and so cannot be left behind."""
    text = yaml.safe_dump({"tenants": [{"name": TENANT, "tokens": [token_hash(token)]}]})
    with os.fdopen(os.memfd_create("tenants"), "w") as file:
        file.write(text)
        file.flush()
        yield Path(f"/proc/self/fd/{file.fileno()}")
