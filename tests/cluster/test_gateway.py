"""
The whole service over real pods: two gateways and a controller as processes, a trainer that speaks Agent RFT.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

import aiohttp

from support.cluster_stage import until
from support.deployed import gateway
from support.trainer import SECONDS, TOKEN, Trainer, free_port

if TYPE_CHECKING:
    from support.cluster_stage import Stage

COUNT = "echo x >> /workspace/n; wc -l < /workspace/n"


async def test_a_rollout_goes_through_two_gateways_and_the_death_of_one(stage: Stage) -> None:
    await stage.want(3)
    ports = [free_port(), free_port()]
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
    port = free_port()
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
