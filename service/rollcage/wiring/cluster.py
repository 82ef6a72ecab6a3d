"""
Put a controller together over a Kubernetes cluster.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server

from rollcage.controller.greeting import greeter
from rollcage.controller.leading import Lease
from rollcage.controller.service import by_lease, serve
from rollcage.sandboxes.kubernetes import capabilities
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.environments import KubernetesRecipes
from rollcage.sandboxes.kubernetes.source import KubernetesSource
from rollcage.telemetry.metrics import Metrics
from rollcage.wire.keyring import Keyring
from rollcage.wiring.awaiting import awaited_store
from rollcage.wiring.pulse import pulse
from rollcage.wiring.running import end_by_signals

if TYPE_CHECKING:
    from rollcage.wiring.settings import ControllerSettings


async def control(settings: ControllerSettings) -> None:
    """Be a controller until cancelled."""
    async with AsyncExitStack() as stack:
        # A lease is released, connections are closed.
        end_by_signals()
        keyring = Keyring.read(settings.keyring)
        api = await stack.enter_async_context(connected(settings.kubeconfig))
        store = await stack.enter_async_context(awaited_store(settings.store))
        metrics = Metrics(CollectorRegistry())
        if settings.metrics_port:
            exposed, _ = start_http_server(settings.metrics_port, registry=metrics.registry)
            stack.callback(exposed.shutdown)
        await stack.enter_async_context(pulse(store, metrics))

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
