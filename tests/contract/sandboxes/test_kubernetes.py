"""Pods on a real cluster keep the promise of every source."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from cluster.conftest import cluster, core, namespace  # noqa: F401 - fixtures
from contract.sandboxes.suite import SourceContract
from support.kube import wait_for
from support.kubernetes_source import opened

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from lab.kind import Cluster
    from rollcage.sandboxes.source import Sandbox, SandboxSource
    from support.kube import Namespace

# PID 1 notices within ten seconds, and ends by its own exit code.
LOWER_ITS_LIMITS = ("prlimit", "--pid", "1", "--nofile=3:3")


class TestKubernetes(SourceContract):
    patience = 120.0

    @pytest.fixture
    def open_source(
        self,
        cluster: Cluster,  # noqa: F811
        namespace: Namespace,  # noqa: F811
    ) -> Callable[[], AbstractAsyncContextManager[SandboxSource]]:
        self.namespace = namespace

        @asynccontextmanager
        async def alone() -> AsyncIterator[SandboxSource]:
            async with opened(cluster, namespace.name) as source:
                yield source
            await asyncio.to_thread(wait_for, "the sandboxes to be gone", self.nothing_is_left)

        return alone

    def nothing_is_left(self) -> bool:
        return not self.namespace.core.list_namespaced_pod(self.namespace.name).items

    async def end_by_itself(self, source: SandboxSource, sandbox: Sandbox) -> int:
        assert source
        await asyncio.to_thread(self.namespace.exec, sandbox.name, *LOWER_ITS_LIMITS)
        return 86
