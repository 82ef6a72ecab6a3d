"""
Local sandboxes for tests: which tiers this machine has, one source in each, and a driver for what runs in it.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.core.environment import Environment
from rollcage.sandboxes.local.detect import refusal_of
from rollcage.sandboxes.local.place import place
from rollcage.sandboxes.local.source import LocalSettings, local_source
from rollcage.sandboxes.local.tiers import Detection, Tier
from rollcage.sandboxes.source import Phase, Sandbox, Seen
from support.toolserver import KEYS, SECONDS, Toolserver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rollcage.sandboxes.local.source import LocalSource

# Those in which a sandbox has a root and processes of its own, and nothing it destroys is anybody else's.
OWN_ROOT = (Tier.BUBBLEWRAP, Tier.NAMESPACES)


@functools.cache
def _refusal(tier: Tier, toolserver: Path) -> str:
    with place(toolserver) as where:
        return asyncio.run(refusal_of(tier, where))


def need(tier: Tier, toolserver: Path) -> Tier:
    """Return a tier, or skip the test with the reason why this machine does not have it."""
    if refusal := _refusal(tier, toolserver):
        pytest.skip(f"no {tier} here: {refusal}")
    return tier


def environment(name: str = "local", **spec: Any) -> Environment:
    """Return an environment; on a laptop its image does not matter."""
    return Environment.model_validate({"name": name, "spec": {"image": "none", **spec}})


@asynccontextmanager
async def opened(tier: Tier, toolserver: Path, **settings: Any) -> AsyncIterator[LocalSource]:
    """Lend a source that uses one tier."""
    async with local_source(LocalSettings(toolserver, KEYS, detection=Detection(tier), **settings)) as source:
        yield source


async def started(source: LocalSource, name: str, made_of: Environment | None = None) -> LocalSandbox:
    """Start a sandbox and return its driver once it runs."""
    async with source.observe() as changes:
        await source.create(name, made_of or environment())
        async for change in changes:
            if isinstance(change, Seen) and change.sandbox.name == name:
                assert change.sandbox.phase is not Phase.ENDED, change.sandbox.ending
                if change.sandbox.phase is Phase.RUNNING:
                    return LocalSandbox(change.sandbox)
    raise AssertionError("the watch ended")


async def ended(source: LocalSource, name: str) -> Sandbox:
    """Wait until a sandbox has ended."""
    async with asyncio.timeout(SECONDS), source.observe() as changes:
        async for change in changes:
            if isinstance(change, Seen) and change.sandbox.name == name and change.sandbox.phase is Phase.ENDED:
                return change.sandbox
    raise AssertionError("the watch ended")


class LocalSandbox(Toolserver):
    """A local sandbox, as its gateway sees it."""

    def __init__(self, shown: Sandbox) -> None:
        assert shown.address
        path = shown.address.removeprefix("unix:")

        def dial() -> socket.socket:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(SECONDS)
            try:
                connection.connect(path)
            except OSError:
                connection.close()
                raise
            return connection

        super().__init__(dial, sandbox=shown.name)
        self.shown = shown

    async def run(self, command: str, /, **arguments: Any) -> str:
        """Run a command and return what the model would see."""
        return (await asyncio.to_thread(self.shell, command, **arguments)).output

    async def python(self, code: str, /, **arguments: Any) -> str:
        """Run a Python program and return what the model would see."""
        return await self.run('exec python3 -c "$CODE"', env={"CODE": code}, **arguments)
