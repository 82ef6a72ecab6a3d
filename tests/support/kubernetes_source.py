"""
A source of sandboxes on the test cluster, opened as the service would.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lab.images import reference
from rollcage.sandboxes.kubernetes import capabilities
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.source import KubernetesSource
from support.kube import wait_for
from support.toolserver import KEYS, Toolserver, dialer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from lab.kind import Cluster
    from rollcage.sandboxes.source import Sandbox


@asynccontextmanager
async def opened(cluster: Cluster, namespace: str) -> AsyncIterator[KubernetesSource]:
    """Lend the source of a namespace's sandboxes."""
    async with connected(cluster.kubeconfig) as api:
        yield KubernetesSource(
            api,
            namespace=namespace,
            keys=json.loads(KEYS),
            toolserver_image=reference("toolserver"),
            image_volumes=await capabilities.image_volumes(api),
        )


async def driver(sandbox: Sandbox) -> Toolserver:
    """Return a driver of a running sandbox, as soon as its toolserver is ready."""
    assert sandbox.address
    url = urlsplit(sandbox.address)
    assert url.hostname
    assert url.port
    toolserver = Toolserver(dialer(url.hostname, url.port), sandbox=sandbox.name)
    await asyncio.to_thread(wait_for, f"{sandbox.name} to be ready", toolserver.ready)
    return toolserver
