"""The release that the tests of this directory share, and whoever calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from support.beside_the_release import operators_definitions
from support.installed import NAMESPACE, RELEASE, SIZE, STORAGE_CLASS, VOLUME, Installed, Trainer
from support.volumes import node_volume

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from lab.kind import Cluster

SECONDS = aiohttp.ClientTimeout(total=120)


@pytest.fixture(scope="package")
def release(cluster: Cluster, core: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The chart, installed; what is left of it after the tests is removed."""
    made = Installed(cluster, core, tmp_path_factory.mktemp("chart"))
    core.create_namespace(
        {"metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    )
    volume = node_volume(cluster, core, VOLUME, storage_class=STORAGE_CLASS, size=SIZE)
    with volume, operators_definitions(cluster, core):
        try:
            made.install()
            made.wait_until_warm()
            yield made
        finally:
            if RELEASE in made.helm("list", "--all", "--short"):
                made.helm("uninstall", RELEASE, "--wait", "--timeout=4m")
            core.delete_namespace(NAMESPACE)


@pytest.fixture
async def trainer(release: Installed) -> AsyncIterator[Trainer]:
    async with aiohttp.ClientSession(timeout=SECONDS) as session:
        yield Trainer(session, release.secret("token", "token"))
