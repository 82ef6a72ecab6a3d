"""
Put a gateway together over a store: as a process of its own, or as a part of one.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from rollcage.console.pages import CONSOLE_PATH, console
from rollcage.gateway.admission import Admission
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits, Parts
from rollcage.gateway.serving import DrainingServer, Serving, server, tame_collector
from rollcage.gateway.tenants_file import TenantsFile
from rollcage.grading.desk import Desk
from rollcage.grading.workers import WorkerSettings, open_workers
from rollcage.rollouts.archivist import Archivist
from rollcage.rollouts.usecases import open_use_cases
from rollcage.telemetry.metrics import Metrics
from rollcage.telemetry.witness import MetricsWitness
from rollcage.wire.keyring import Keyring
from rollcage.wiring.awaiting import awaited_store
from rollcage.wiring.pulse import answers, pulse
from rollcage.wiring.tracing import tracing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping
    from pathlib import Path

    from rollcage.core.environment import Environment
    from rollcage.store.store import Store
    from rollcage.wire.tokens import Signer
    from rollcage.wiring.settings import GatewaySettings


async def answer(settings: GatewaySettings) -> None:
    """Be a gateway until told to stop, and answered every call."""
    async with AsyncExitStack() as stack:
        keyring = Keyring.read(settings.keyring)
        store = await stack.enter_async_context(awaited_store(settings.store))
        serving = assembled(
            store,
            keyring.signer,
            tenants=settings.tenants,
            metrics=Metrics(CollectorRegistry()),
            serving=Serving(host=settings.host, port=settings.port),
            graders=WorkerSettings(paths=settings.graders),
            archive=settings.archive,
            traces=settings.traces,
        )
        await (await stack.enter_async_context(serving)).serve()


@asynccontextmanager
async def assembled(
    store: Store,
    signer: Signer,
    *,
    tenants: Path,
    metrics: Metrics,
    serving: Serving,
    graders: WorkerSettings | None = None,
    archive: str = "",
    traces: bool = False,
) -> AsyncIterator[DrainingServer]:
    """Give a gateway that is ready to serve."""
    environments, heard_of = dict[str, "Environment"](), asyncio.Event()
    known = TenantsFile(tenants, metrics=metrics)

    def custom_tools(environment: str) -> Collection[str]:
        found = environments.get(environment)
        return {tool.name for tool in found.spec.tools.custom} if found else ()

    async def follow_environments() -> None:
        async for found in store.environments.observe():
            environments.clear()
            environments.update(found)
            metrics.know(environments)
            heard_of.set()

    async def checks() -> Mapping[str, bool]:
        return {"redis": await answers(store), "environments": heard_of.is_set()}

    @asynccontextmanager
    async def background() -> AsyncIterator[None]:
        async with pulse(store, metrics), asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(known.follow()), tasks.create_task(follow_environments())]
            if archive:
                archivist = Archivist(archive, store=store, use_cases=use_cases, metrics=metrics)
                following.append(tasks.create_task(archivist.work()))
            tame_collector()
            yield
            for task in following:
                task.cancel()
        await traced.end()

    witness = MetricsWitness(metrics, custom_tools=custom_tools)
    limits = Limits()
    async with (
        tracing(metrics, wanted=traces) as traced,
        open_use_cases(store, signer, witness=witness, tracer=traced.tracer) as use_cases,
        open_workers(graders) as workers,
    ):
        parts = Parts(
            use_cases=use_cases,
            records=store.rollouts,
            pools=store.pools,
            tenants=known,
            environments=environments,
            metrics=metrics,
            admission=Admission(most=limits.in_flight_calls, metrics=metrics),
            limits=limits,
            graders=Desk(
                use_cases=use_cases,
                scores=store.scores,
                environments=environments,
                workers=workers,
                metrics=metrics,
            ),
        )
        app = gateway(parts, checks=checks, background=background, mounts={CONSOLE_PATH: console()})
        yield server(traced.around(app), serving, admission=parts.admission)
