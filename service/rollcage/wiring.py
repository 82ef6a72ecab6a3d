"""
The one place that knows which adapter is real.

Everything else receives its collaborators as arguments. Reads the settings of
a deployed process from its environment variables and puts the parts together.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path  # noqa: TC003 - pydantic reads it at run time
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rollcage.controller.greeting import greeter
from rollcage.controller.leading import Lease
from rollcage.controller.service import by_lease, serve
from rollcage.core.errors import RollcageError
from rollcage.sandboxes.kubernetes import capabilities
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.environments import KubernetesRecipes
from rollcage.sandboxes.kubernetes.source import KubernetesSource
from rollcage.store.settings import Settings as StoreSettings
from rollcage.store.store import open_store
from rollcage.telemetry import logs
from rollcage.wire.keyring import Keyring

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

_PREFIX = "ROLLCAGE_"


class ControllerSettings(BaseModel):
    """What a controller on a cluster is told; each field is a variable, ``ROLLCAGE_REDIS_URL`` and so on."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    redis_url: str
    keyring: Path
    """The file with the signing keys."""
    sandbox_namespace: str
    """Where sandboxes run, and where environments are read from."""
    lease_namespace: str
    lease: str = "rollcage-controller"
    toolserver_image: str
    store_namespace: str = "rollcage"
    identity: str = Field(default_factory=lambda: f"{socket.gethostname()}-{os.getpid()}")
    kubeconfig: Annotated[Path | None, Field(default=None)] = None
    """For a controller outside its cluster."""


def settings_from(variables: dict[str, str]) -> ControllerSettings:
    """Read the settings, or raise ValidationError."""
    given = {name.removeprefix(_PREFIX).lower(): text for name, text in variables.items() if name.startswith(_PREFIX)}
    return ControllerSettings.model_validate(given)


async def control(settings: ControllerSettings) -> None:
    """Be a controller until cancelled."""
    async with AsyncExitStack() as stack:
        keyring = Keyring.read(settings.keyring)
        api = await stack.enter_async_context(connected(settings.kubeconfig))
        store = await stack.enter_async_context(
            open_store(StoreSettings(settings.redis_url, namespace=settings.store_namespace))
        )

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


def controller() -> None:
    """Run ``rollcage-controller``."""
    try:
        settings = settings_from(dict(os.environ))
    except ValidationError as error:
        wrong = (f"{_PREFIX}{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors())
        sys.exit("\n".join(wrong))
    logs.configure()
    _run(lambda: control(settings))


def _run(work: Callable[[], Awaitable[None]]) -> None:
    async def until_told() -> None:
        async with _stopping():
            await work()

    try:
        asyncio.run(until_told())
    except asyncio.CancelledError:
        return
    except RollcageError as error:
        sys.exit(f"{error.code}: {error}")


@asynccontextmanager
async def _stopping() -> AsyncIterator[None]:
    """Let SIGTERM and SIGINT end the block in an orderly way: a lease is released, connections are closed."""
    task = asyncio.current_task()
    assert task  # noqa: S101 - called from one
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    yield


if __name__ == "__main__":
    controller()
