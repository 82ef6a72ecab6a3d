"""The cluster that ``scripts/test --cluster`` made, and a namespace of its own for each test module."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from lab import engine
from lab.images import reference
from lab.kind import Cluster
from support.cluster_stage import Stage, opened
from support.kube import Namespace, connected, wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    shape = os.environ.get("ROLLCAGE_TEST_CLUSTER")
    if not shape:
        pytest.skip("needs a Kubernetes cluster: run scripts/test --cluster")
    running = engine.running()
    assert running is not None, "the cluster's Docker engine is gone"
    return Cluster(shape, running)


@pytest.fixture(scope="session")
def core(cluster: Cluster) -> Iterator[Any]:
    """The core API of the cluster."""
    with connected(cluster.kubeconfig) as api:
        yield api


@pytest.fixture(scope="session")
def sandbox_image(cluster: Cluster) -> str:
    assert cluster.nodes()
    return reference("sandbox")


@pytest.fixture(scope="module")
def namespace(core: Any) -> Iterator[Namespace]:
    """A namespace that refuses every pod below the restricted standard."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    core.create_namespace({"metadata": {"name": name, "labels": labels}})

    def account() -> bool:
        found = core.list_namespaced_service_account(name, field_selector="metadata.name=default")
        return bool(found.items)

    # Until it exists every pod is refused.
    wait_for("the namespace's service account", account)
    yield Namespace(name, core)
    core.delete_namespace(name)


@pytest.fixture
async def stage(cluster: Cluster, tmp_path: Path) -> AsyncIterator[Stage]:
    """A namespace and a Redis for the parts of the service as they are deployed."""
    async with opened(cluster, tmp_path) as made:
        yield made
