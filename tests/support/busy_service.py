"""
A whole service on this machine under load, with every kind of trouble that a dashboard is there to show.

The sandboxes are isolated, so the model may do its worst.
"""

from __future__ import annotations

import asyncio
import os
import signal
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rollcage.core.ids import RolloutId
from rollcage.sandboxes.local.tiers import NoIsolation
from rollcage.store.records import Sandbox
from rollcage.wiring.laptop import TENANT, LaptopSettings, laptop
from support.local_sandboxes import OWN_ROOT, environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from rollcage.wiring.laptop import Laptop
    from support.prometheus import Prometheus

TOKEN = "busy-0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - made up
RUN = "run-1"
GRADER = {"kind": "number", "expected": "item.answer"}
# Ends its own sandbox: PID 1 with no room for files any more is not what its service made.
CRIPPLE = "prlimit --pid 1 --nofile=3:3; sleep 5"
# Where /proc/PID/stat has them, counted from the name.
_PARENT, _BEGAN = 2, 20

ENVIRONMENTS = {
    one.name: one
    for one in (
        environment("swe", pool={"warm": 4, "maxPods": 12}, grading={"grader": GRADER}),
        environment("tight", pool={"warm": 1, "maxPods": 1}),
        environment("astray", pool={"warm": 0, "maxPods": 2}),
        # A directory below a file cannot be made.
        environment("broken", pool={"warm": 1}, workspace={"path": "/etc/passwd/workspace"}),
    )
}


@dataclass(frozen=True, slots=True)
class BusyService:
    """What a trainer, a model and bad luck do to a service."""

    service: Laptop
    client: httpx.AsyncClient

    async def call(
        self, rollout: str, arguments: Any, *, where: str = "swe", call: str = "", tool: str = "shell"
    ) -> int:
        """Make a call as a trainer does, and return the status."""
        body = {"trace_id": rollout, "call_id": call or uuid.uuid4().hex, "name": tool, "arguments": arguments}
        return (await self.client.post(f"/agent-rft/runs/{RUN}/environments/{where}/tools", json=body)).status_code

    async def shell(self, rollout: str, command: str, *, where: str = "swe", **more: Any) -> int:
        return await self.call(rollout, {"command": command, **more}, where=where)

    async def finish(self, rollout: str) -> None:
        assert (await self.client.post(f"/v1/rollouts/{rollout}/finish", json={})).is_success

    async def grade(self, rollout: str, text: str) -> int:
        body = {"trace_id": rollout, "sample": {"output_text": text}, "item": {"answer": "7"}}
        return (await self.client.post(f"/agent-rft/runs/{RUN}/environments/swe/grade", json=body)).status_code

    async def trouble(self, watched: Prometheus) -> None:
        """Let everything go wrong that can, but for Redis, while others work."""
        await asyncio.gather(
            self.ordinary(), self.sandbox_killed(), self.sandbox_crippled(), self.astray(), self.strangers()
        )
        await self.in_line(watched)

    async def ordinary(self) -> None:
        """Let rollouts do what models do, and get their scores: a good one and a bad one."""
        for rollout, text in zip(_new(2), ("7", "8"), strict=True):
            assert await self.shell(rollout, "echo hello") == 200
            assert await self.shell(rollout, "false") == 200
            assert await self.shell(rollout, "sleep 9", timeout_ms=500) == 200
            assert await self.shell(rollout, "head -c 3000000 /dev/zero | tr '\\0' x") == 200
            assert await self.call(rollout, "{not json") == 200
            assert await self.call(rollout, {}, tool="made-up") == 200
            for _ in range(2):
                assert await self.call(rollout, {"command": "true"}, call="the-same") == 200
            assert await self.grade(rollout, text) == 200

    async def sandbox_killed(self) -> None:
        """Kill a sandbox from outside while it runs a call: the rollout is masked, and gets no score."""
        (rollout,) = _new(1)
        assert await self.shell(rollout, "true") == 200
        call = asyncio.create_task(self.shell(rollout, "sleep 60"))
        process = self.service.source.process((await self._sandbox(rollout)).name)
        assert process
        await asyncio.sleep(0.3)  # It must have been sent; that it is has no sign outside.
        os.kill(process, signal.SIGKILL)
        assert await call == 503
        assert await self.grade(rollout, "7") == 503

    async def sandbox_crippled(self) -> None:
        """Let the model end its own sandbox: the rollout is over, and trained on."""
        (rollout,) = _new(1)
        assert await self.shell(rollout, "true") == 200
        while (await self._record(rollout))["verdict"] is None:
            assert await self.shell(rollout, CRIPPLE) == 200
        assert await self.shell(rollout, "true") == 200

    async def astray(self) -> None:
        """Send a call to the sandbox of somebody else."""
        mine, other = _new(2)
        assert await self.shell(mine, "true") == 200
        theirs = await self._sandbox(mine)
        epoch = (await self.service.store.standpoint()).leader
        wrong = Sandbox(name=f"astray-{other}", environment="astray", address=theirs.address)
        await self.service.store.as_leader(epoch).pools.offer(wrong)
        assert await self.shell(other, "true", where="astray") == 200
        await self.finish(mine)
        await self.finish(other)

    async def in_line(self, watched: Prometheus) -> None:
        """Let a rollout wait for the only sandbox there is, until Prometheus has seen it wait."""
        first, second = _new(2)
        assert await self.shell(first, "true", where="tight") == 200
        waiting = asyncio.create_task(self.shell(second, "true", where="tight"))
        await watched.until('rollcage_queue_length{environment="tight"} > 0')
        await self.finish(first)
        assert await waiting == 200
        await self.finish(second)

    async def strangers(self) -> None:
        """Come without a token, with a wrong one, and with too much."""
        path = "/agent-rft/environments/swe/tools"
        for headers in ({"authorization": ""}, {"authorization": "Bearer wrong"}):
            assert (await self.client.post(path, json={}, headers=headers)).status_code == 401
        assert (await self.client.post(path, content=b"x" * (2 << 20))).status_code == 413

    async def reserved(self) -> None:
        body = {"id": "step-1", "count": 2, "ttl_seconds": 120}
        assert (await self.client.put(f"/v1/runs/{RUN}/reservations/swe", json=body)).is_success

    async def without_redis(self, watched: Prometheus) -> None:
        """Stop Redis until Prometheus has seen it missed, while a rollout goes on."""
        (rollout,) = _new(1)
        assert await self.shell(rollout, "true") == 200
        redis = _child("redis-server")
        os.kill(redis, signal.SIGSTOP)
        try:
            assert await self.shell(rollout, "true") == 200
            await watched.until("rollcage_store_up == 0")
        finally:
            os.kill(redis, signal.SIGCONT)
        await watched.until("rollcage_store_up == 1")
        await self.finish(rollout)

    async def _sandbox(self, rollout: str) -> Sandbox:
        record = await self.service.store.rollouts.get(RolloutId(TENANT, rollout).key)
        assert record
        assert record.sandbox
        return record.sandbox

    async def _record(self, rollout: str) -> Any:
        return (await self.client.get(f"/v1/rollouts/{rollout}")).json()


@asynccontextmanager
async def busy_service(toolserver: Path) -> AsyncIterator[BusyService]:
    """Lend a service; the test is skipped where sandboxes have no root of their own."""
    try:
        async with laptop(LaptopSettings(ENVIRONMENTS, toolserver, TOKEN, port=0)) as service:
            if service.source.detection.tier not in OWN_ROOT:
                pytest.skip(f"no namespaces here: {service.source.detection.tier} is all there is")
            headers = {"authorization": f"Bearer {TOKEN}"}
            async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=90, trust_env=False) as client:
                yield BusyService(service, client)
    except NoIsolation as refusal:
        pytest.skip(f"no namespaces here: {refusal}")


def _new(number: int) -> list[str]:
    return [f"trace-{uuid.uuid4().hex[:12]}" for _ in range(number)]


def _child(name: str) -> int:
    """Return the number of this process's youngest child of this name: the tests' own Redis is an older one."""
    found = [(int(words[_BEGAN]), int(entry.parent.name)) for entry, words in _children() if name in words[0]]
    return max(found)[1]


def _children() -> Iterator[tuple[Path, list[str]]]:
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, tail = entry.read_text().rpartition(")")
        except OSError:
            continue  # Gone meanwhile.
        words = [head, *tail.split()]
        if int(words[_PARENT]) == os.getpid():
            yield entry, words
