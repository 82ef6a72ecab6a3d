"""
The one place that knows which adapter is real.

Everything else receives its collaborators as arguments. Reads the settings of
a deployed process from its environment variables, puts the parts together, and
runs one of them: ``python -m rollcage.wiring controller`` or ``gateway``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path  # noqa: TC003 - pydantic reads it at run time
from typing import TYPE_CHECKING, Final, TypeVar

import uvloop
from prometheus_client import CollectorRegistry, start_http_server
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rollcage.controller.greeting import greeter
from rollcage.controller.leading import Lease
from rollcage.controller.service import by_lease, serve
from rollcage.core.errors import RollcageError
from rollcage.gateway.admission import Admission
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits, Parts
from rollcage.gateway.serving import Serving, server, tame_collector
from rollcage.gateway.tenants_file import TenantsFile
from rollcage.rollouts.usecases import open_use_cases
from rollcage.sandboxes.kubernetes import capabilities
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.environments import KubernetesRecipes
from rollcage.sandboxes.kubernetes.source import KubernetesSource
from rollcage.store.settings import Settings as StoreSettings
from rollcage.store.store import open_store
from rollcage.telemetry import logs
from rollcage.telemetry.metrics import Metrics
from rollcage.telemetry.witness import MetricsWitness
from rollcage.wire.keyring import Keyring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Collection, Mapping

    from rollcage.core.environment import Environment
    from rollcage.store.store import Store

_PREFIX: Final = "ROLLCAGE_"


class _Settings(BaseModel):
    """Each field is a variable: ``redis_url`` is ``ROLLCAGE_REDIS_URL``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    redis_url: str
    keyring: Path
    """The file with the signing keys."""
    store_namespace: str = "rollcage"


class ControllerSettings(_Settings):
    """What a controller on a cluster is told."""

    sandbox_namespace: str
    """Where sandboxes run, and where environments are read from."""
    lease_namespace: str
    lease: str = "rollcage-controller"
    toolserver_image: str
    identity: str = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    metrics_port: int = 0
    """Where Prometheus finds the metrics; nowhere if 0."""
    kubeconfig: Path | None = None
    """For a controller outside its cluster."""


class GatewaySettings(_Settings):
    """What a gateway is told."""

    tenants: Path
    """The file with the tenants."""
    host: str = "0.0.0.0"  # noqa: S104 - a service in a pod
    port: int = 8080


S = TypeVar("S", bound=_Settings)


def settings_from(kind: type[S], variables: Mapping[str, str]) -> S:
    """Read the settings, or raise ValidationError."""
    given = {name.removeprefix(_PREFIX).lower(): text for name, text in variables.items() if name.startswith(_PREFIX)}
    return kind.model_validate(given)


async def control(settings: ControllerSettings) -> None:
    """Be a controller until cancelled."""
    async with AsyncExitStack() as stack:
        _end_by_signals()
        keyring = Keyring.read(settings.keyring)
        api = await stack.enter_async_context(connected(settings.kubeconfig))
        store = await stack.enter_async_context(_store(settings))
        metrics = Metrics(CollectorRegistry())
        if settings.metrics_port:
            exposed, _ = start_http_server(settings.metrics_port, registry=metrics.registry)
            stack.callback(exposed.shutdown)

        async def highest_epoch() -> int:
            return (await store.standpoint()).leader

        await serve(
            source=KubernetesSource(
                api,
                namespace=settings.sandbox_namespace,
                keys=keyring.public_keys,
                toolserver_image=settings.toolserver_image,
                image_volumes=await capabilities.image_volumes(api),
            ),
            recipes=KubernetesRecipes(api, namespace=settings.sandbox_namespace),
            store=store,
            greeter=await stack.enter_async_context(greeter(keyring.signer)),
            metrics=metrics,
            election=by_lease(
                Lease(
                    api,
                    namespace=settings.lease_namespace,
                    name=settings.lease,
                    identity=settings.identity,
                    floor=highest_epoch,
                )
            ),
        )


async def answer(settings: GatewaySettings) -> None:
    """Be a gateway until told to stop, and answered every call."""
    metrics, environments = Metrics(CollectorRegistry()), dict[str, "Environment"]()
    tenants = TenantsFile(settings.tenants, metrics=metrics)

    def custom_tools(environment: str) -> Collection[str]:
        found = environments.get(environment)
        return {tool.name for tool in found.spec.tools.custom} if found else ()

    async with AsyncExitStack() as stack:
        keyring = Keyring.read(settings.keyring)
        store = await stack.enter_async_context(_store(settings))
        witness = MetricsWitness(metrics, custom_tools=custom_tools)
        limits = Limits()
        parts = Parts(
            use_cases=await stack.enter_async_context(open_use_cases(store, keyring.signer, witness=witness)),
            records=store.rollouts,
            tenants=tenants,
            environments=environments,
            metrics=metrics,
            admission=Admission(most=limits.in_flight_calls, metrics=metrics),
            limits=limits,
        )

        async def follow_environments() -> None:
            async for found in store.environments.observe():
                environments.clear()
                environments.update(found)
                metrics.environments.know(environments)

        async def checks() -> Mapping[str, bool]:
            return {"redis": await _answers(store), "environments": bool(environments)}

        @asynccontextmanager
        async def background() -> AsyncIterator[None]:
            async with asyncio.TaskGroup() as tasks:
                following = [tasks.create_task(tenants.follow()), tasks.create_task(follow_environments())]
                tame_collector()
                yield
                for task in following:
                    task.cancel()

        app = gateway(parts, checks=checks, background=background)
        serving = Serving(host=settings.host, port=settings.port)
        await server(app, serving, admission=parts.admission).serve()


@asynccontextmanager
async def _store(settings: _Settings) -> AsyncIterator[Store]:
    async with open_store(StoreSettings(settings.redis_url, namespace=settings.store_namespace)) as store:
        yield store


async def _answers(store: Store) -> bool:
    try:
        await store.standpoint()
    except RollcageError:
        return False
    return True


def main(arguments: list[str]) -> None:
    """Run the part that is named."""
    logs.configure()
    match arguments:
        case ["controller"]:
            _run(control(_told(ControllerSettings)))
        case ["gateway"]:
            _run(answer(_told(GatewaySettings)))
        case _:
            sys.exit("usage: python -m rollcage.wiring controller|gateway")


def _told(kind: type[S]) -> S:
    try:
        return settings_from(kind, os.environ)
    except ValidationError as error:
        wrong = (f"{_PREFIX}{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors())
        sys.exit("\n".join(wrong))


def _run(work: Awaitable[None]) -> None:
    async def working() -> None:
        await work

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(working())
    except asyncio.CancelledError:
        return
    except RollcageError as error:
        sys.exit(f"{error.code}: {error}")


def _end_by_signals() -> None:
    """Let SIGTERM and SIGINT end this task in an orderly way: a lease is released, connections are closed."""
    task = asyncio.current_task()
    assert task  # noqa: S101 - called from one
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)


if __name__ == "__main__":
    main(sys.argv[1:])
