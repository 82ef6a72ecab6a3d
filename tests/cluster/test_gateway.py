"""
The whole service over real pods: two gateways and a controller as processes, a trainer that speaks Agent RFT.
"""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import aiohttp

from support.cluster_stage import until
from support.deployed import gateway

if TYPE_CHECKING:
    from support.cluster_stage import Stage

TOKEN = "cluster-0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - made up
COUNT = "echo x >> /workspace/n; wc -l < /workspace/n"
SECONDS = aiohttp.ClientTimeout(total=120)


class Trainer:
    """Calls tools as the platform does: any gateway, up to three more times on a 5xx."""

    def __init__(self, session: aiohttp.ClientSession, ports: list[int]) -> None:
        self._session = session
        self.ports = ports

    async def call(self, trace: str, call_id: str, command: str, *, port: int | None = None) -> tuple[int, Any]:
        body = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": "shell",
            "arguments": json.dumps({"command": command}),
            "trace_id": trace,
        }
        status, answer = 0, None
        for attempt in range(4):
            at = port if port and attempt == 0 else self.ports[attempt % len(self.ports)]
            try:
                status, answer = await self.ask("POST", "/agent-rft/runs/step/environments/pool/tools", body, port=at)
            except (aiohttp.ClientError, TimeoutError):
                continue
            if status < 500:
                break
            await asyncio.sleep(0.5)
        return status, answer

    async def ask(self, method: str, path: str, body: Any = None, *, port: int | None = None) -> tuple[int, Any]:
        url = f"http://127.0.0.1:{port or self.ports[0]}{path}"
        async with self._session.request(method, url, json=body) as answer:
            return answer.status, await answer.json(content_type=None)

    async def serving(self, port: int) -> bool:
        try:
            return (await self.ask("GET", "/readyz", port=port))[0] == 200
        except aiohttp.ClientError:
            return False


async def test_a_rollout_goes_through_two_gateways_and_the_death_of_one(stage: Stage) -> None:
    await stage.want(3)
    ports = [_free_port(), _free_port()]
    with ExitStack() as stack:
        stack.enter_context(stage.controller())
        first, _ = (
            stack.enter_context(gateway(stage.directory, redis_url=stage.url, token=TOKEN, port=port)) for port in ports
        )
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers, timeout=SECONDS) as session:
            trainer = Trainer(session, ports)
            for port in ports:
                await until(lambda port=port: trainer.serving(port), "the gateway")  # type: ignore[misc]
            await stage.ready(3)

            for number in range(6):
                status, answer = await trainer.call("trace_1", f"call_{number}", COUNT, port=ports[number % 2])
                assert (status, answer["output"].strip()) == (200, str(number + 1))

            running = asyncio.create_task(
                trainer.call(
                    "trace_1", "call_slow", "sleep 3; echo x >> /workspace/n; wc -l < /workspace/n", port=ports[0]
                )
            )
            await asyncio.sleep(1)
            first.kill()
            trainer.ports = ports[1:]
            status, answer = await running
            assert (status, answer["output"].strip()) == (200, "7")

            status, answer = await trainer.ask("GET", "/v1/rollouts/trace_1/trajectory")
            assert status == 200
            assert len(answer["steps"]) == 7


async def test_a_pod_that_is_killed_from_outside_masks_and_one_that_the_model_spoils_does_not(stage: Stage) -> None:
    await stage.want(2)
    port = _free_port()
    with ExitStack() as stack:
        stack.enter_context(stage.controller())
        stack.enter_context(gateway(stage.directory, redis_url=stage.url, token=TOKEN, port=port))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers, timeout=SECONDS) as session:
            trainer = Trainer(session, [port])
            await until(lambda: trainer.serving(port), "the gateway")
            await stage.ready(2)
            assert (await trainer.call("trace_spoilt", "c1", "rm -rf / 2>/dev/null; echo done"))[0] == 200
            assert (await trainer.call("trace_killed", "c1", "true"))[0] == 200

            pod = (await stage.sandbox("trace_killed")).name
            await stage.api.request(
                "DELETE", f"/api/v1/namespaces/{stage.namespace}/pods/{pod}", body={"gracePeriodSeconds": 0}
            )
            await until(lambda: _masked(trainer, "trace_killed"), "the verdict")

            assert (await trainer.call("trace_killed", "c2", "true"))[0] == 503
            status, answer = await trainer.call("trace_spoilt", "c2", "echo still here")
            assert status == 200
            assert isinstance(answer["output"], str)
            assert not await _masked(trainer, "trace_spoilt")


async def _masked(trainer: Trainer, trace: str) -> bool:
    _, answer = await trainer.ask("GET", f"/v1/rollouts/{trace}/verdict")
    return bool(answer["verdict"] and answer["verdict"]["word"] == "masked")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
