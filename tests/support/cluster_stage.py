"""
A namespace of the test cluster with a Redis of its own, for the parts of the service as they are deployed.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path  # noqa: TC003 - dataclass
from typing import TYPE_CHECKING, Any

from lab.places import ROOT
from rollcage.core.environment import Environment
from rollcage.core.errors import StoreRecovering
from rollcage.core.ids import RolloutId
from rollcage.rollouts.actions import Action, Answer
from rollcage.rollouts.usecases import open_use_cases
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.wire.keyring import Keyring, new_keyring
from support.api_proxy import ApiProxy, api_proxy
from support.deployed import controller
from support.environments import resource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from lab.kind import Cluster
    from rollcage.rollouts.usecases import UseCases
    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.store.records import Sandbox
    from rollcage.store.store import Store

CRD = ROOT / "manifests" / "crd" / "environments.rollcage.dev.yaml"
# A loaded two-core machine; what is waited for takes seconds on a quiet one.
PATIENCE = 240.0
# Longer than the controller needs to act on what it knows.
A_WHILE = 5.0


@dataclass
class Stage:
    """A namespace with an environment, a Redis, and what tests do with them."""

    cluster: Cluster
    api: Api
    proxy: ApiProxy
    store: Store
    use_cases: UseCases
    url: str
    namespace: str
    directory: Path
    environment: Environment | None = None

    def controller(self, identity: str = "first") -> Any:
        """Run a controller that reaches the API server through the proxy."""
        return controller(
            self.directory,
            redis_url=self.url,
            namespace=self.namespace,
            kubeconfig=self.proxy.kubeconfig,
            identity=identity,
        )

    async def want(self, warm: int, **changes: Any) -> None:
        body = resource("pool", pool={"warm": warm, "maxPods": 200}, **changes)
        self.environment = Environment.from_resource(body)
        await self.api.request(
            "POST", f"/apis/rollcage.dev/v1alpha1/namespaces/{self.namespace}/environments", body=body
        )

    async def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods that are not on their way out, by name."""
        found = await self.api.request("GET", f"/api/v1/namespaces/{self.namespace}/pods")
        return {one["metadata"]["name"]: one for one in found["items"] if "deletionTimestamp" not in one["metadata"]}

    async def ready(self, number: int) -> None:
        async def look() -> bool:
            return (await self.store.pools.counts("pool")).ready == number

        await until(look, f"{number} ready sandboxes")

    async def exactly(self, number: int) -> None:
        async def look() -> bool:
            return len(await self.pods()) == number

        await until(look, f"exactly {number} pods")
        await asyncio.sleep(A_WHILE)
        assert len(await self.pods()) == number

    async def shell(self, rollout: str, command: str) -> Answer:
        """Make a call of a rollout, as a gateway does."""
        assert self.environment
        action = Action(
            rollout=RolloutId("acme", rollout),
            run="run",
            environment=self.environment,
            call_id=uuid.uuid4().hex,
            tool="shell",
            arguments={"command": command},
            within=timedelta(seconds=120),
        )
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    return await self.use_cases.act(action)
                except StoreRecovering:
                    # As a trainer does, who is told to come back.
                    await asyncio.sleep(0.2)

    async def sandbox(self, rollout: str) -> Sandbox:
        """Return where a rollout is at home."""
        record = await self.store.rollouts.get(RolloutId("acme", rollout).key)
        assert record
        assert record.sandbox
        return record.sandbox


@asynccontextmanager
async def opened(cluster: Cluster, directory: Path) -> AsyncIterator[Stage]:
    """Make a namespace and a Redis of its own."""
    cluster.apply(CRD.read_text())
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(connected(cluster.kubeconfig))
        namespace = await stack.enter_async_context(_namespace(api))
        proxy = await stack.enter_async_context(api_proxy(cluster.kubeconfig))
        redis = await stack.enter_async_context(running(ServerConfig(find_executable())))
        store = await stack.enter_async_context(open_store(Settings(redis.url)))
        (directory / "keyring.json").write_text(new_keyring())
        signer = Keyring.read(directory / "keyring.json").signer
        yield Stage(
            cluster=cluster,
            api=api,
            proxy=proxy,
            store=store,
            use_cases=await stack.enter_async_context(open_use_cases(store, signer)),
            url=redis.url,
            namespace=namespace,
            directory=directory,
        )


@asynccontextmanager
async def _namespace(api: Api) -> AsyncIterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await api.request("POST", "/api/v1/namespaces", body={"metadata": {"name": name, "labels": labels}})

    async def account() -> bool:
        return bool((await api.request("GET", f"/api/v1/namespaces/{name}/serviceaccounts"))["items"])

    await until(account, "the namespace's service account")
    try:
        yield name
    finally:
        await api.request("DELETE", f"/api/v1/namespaces/{name}")


async def until(look: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await look():  # noqa: ASYNC110 - what is looked at has no event
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise AssertionError(f"gave up waiting for {what}") from None
