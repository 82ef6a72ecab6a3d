"""
The controller as it is deployed, over real pods: it is killed, paused, cut off and lied to, and the pools hold.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from redis.asyncio import Redis

from rollcage.core.ids import RolloutId
from support.cluster_stage import A_WHILE, Stage, until

if TYPE_CHECKING:
    from lab.kind import Cluster
    from support.deployed import Deployed

API_SERVER_STOPPED = 60.0


async def test_claims_at_once_get_distinct_sandboxes_and_cost_at_most_three_writes_each(stage: Stage) -> None:
    await stage.want(20)
    with stage.controller():
        await stage.ready(20)
        filled = sum(stage.proxy.writes.values())
        answers = await asyncio.gather(*(stage.shell(f"r{number}", "echo $ROLLCAGE_SANDBOX") for number in range(20)))
        assert {answer.outcome for answer in answers} == {"ok"}
        homes = {(await stage.sandbox(f"r{number}")).name for number in range(20)}
        # The controller may write labels and refill, but nothing that the claims waited for.
        assert len(homes) == 20

        await stage.ready(20)
        for number in range(20):
            await stage.use_cases.finish(RolloutId("acme", f"r{number}"), run="run", environment="pool")
        await stage.exactly(20)

    writes = stage.proxy.writes
    assert writes["POST pods"] == 40
    assert writes["DELETE pods"] == 20
    assert writes["PATCH pods"] <= 20
    # Twenty rollouts were served and their pods replaced.
    assert writes["POST pods"] + writes["DELETE pods"] + writes["PATCH pods"] - filled <= 3 * 20


async def test_a_controller_killed_while_it_fills_leaves_and_doubles_nothing(stage: Stage) -> None:
    await stage.want(16)
    for _ in range(4):
        with stage.controller() as running_one:
            before = len(await stage.pods())

            async def some_more(before: int = before) -> bool:
                return len(await stage.pods()) > before or before == 16

            await until(some_more, "another pod")
            running_one.kill()
        assert len(await stage.pods()) <= 16
    with stage.controller():
        await stage.ready(16)
        await stage.exactly(16)

    assert stage.proxy.writes["POST pods"] == 16


async def test_a_second_replica_takes_over_and_a_paused_leader_does_no_harm(stage: Stage) -> None:
    await stage.want(6)
    with stage.controller("first") as first:
        await stage.ready(6)
        await stage.shell("r1", "echo kept > /workspace/kept")
        with stage.controller("second") as second:
            first.pause()
            await _leads(second)
            answer = await stage.shell("r1", "cat /workspace/kept")
            await stage.ready(6)
            first.go_on()
            await _stepped_down(first)
            await stage.exactly(7)

    assert answer.output == "kept\n"
    assert stage.proxy.writes["POST pods"] == 7


async def test_a_redis_that_was_emptied_is_filled_again_from_the_pods(stage: Stage) -> None:
    await stage.want(4)
    with stage.controller():
        await stage.ready(4)
        await asyncio.gather(*(stage.shell(f"r{n}", f"echo {n} > /workspace/mine") for n in range(3)))
        homes = [(await stage.sandbox(f"r{n}")).name for n in range(3)]
        await stage.ready(4)
        async with Redis.from_url(stage.url) as redis:
            await redis.flushall()
        answers = await asyncio.gather(*(stage.shell(f"r{n}", "cat /workspace/mine") for n in range(3)))
        new = await asyncio.gather(*(stage.shell(f"new-{n}", "ls /workspace") for n in range(2)))
        assert [(await stage.sandbox(f"r{n}")).name for n in range(3)] == homes

    assert [answer.output for answer in answers] == ["0\n", "1\n", "2\n"]
    assert [answer.output.strip() for answer in new] == ["", ""]


@pytest.mark.alone
async def test_rollouts_do_not_notice_that_the_api_server_is_down(stage: Stage) -> None:
    await stage.want(4)
    with stage.controller():
        await stage.ready(4)
        await stage.shell("r1", "echo 0 > /workspace/count")
        _api_server(stage.cluster, "STOP")
        try:
            async with asyncio.timeout(API_SERVER_STOPPED + 30):
                began = asyncio.get_running_loop().time()
                number = 0
                while asyncio.get_running_loop().time() - began < API_SERVER_STOPPED:
                    number += 1
                    assert (await stage.shell("r1", f"echo {number} > /workspace/count")).outcome == "ok"
                    await asyncio.sleep(1)
                # A new rollout still finds a sandbox that was ready before.
                assert (await stage.shell("r2", "true")).outcome == "ok"
        finally:
            _api_server(stage.cluster, "CONT")
        await stage.ready(4)
        await stage.exactly(6)

    assert (await stage.shell("r1", "cat /workspace/count")).output == f"{number}\n"


async def test_a_watch_that_lags_makes_no_pod_twice(stage: Stage) -> None:
    await stage.want(8)
    with stage.controller():
        await until(lambda: _some(stage), "the first pod")
        stage.proxy.hold_back()
        await asyncio.sleep(4 * A_WHILE)
        assert len(await stage.pods()) <= 8
        stage.proxy.let_go()
        await stage.ready(8)
        await stage.exactly(8)

    assert stage.proxy.writes["POST pods"] == 8


@pytest.mark.alone
async def test_a_node_that_dies_masks_its_rollouts_and_no_others(stage: Stage) -> None:
    await stage.want(6)
    with stage.controller():
        await stage.ready(6)
        rollouts = [f"r{number}" for number in range(6)]
        await asyncio.gather(*(stage.shell(rollout, "true") for rollout in rollouts))
        nodes = {rollout: (await stage.sandbox(rollout)).node for rollout in rollouts}
        # The second one, if there is one of them on it: others keep to the first.
        dead = max(nodes.values())
        stage.cluster.engine.docker("pause", dead)
        try:
            hit = [rollout for rollout in rollouts if nodes[rollout] == dead]
            await until(lambda: _judged(stage, hit[0]), "the verdict")
        finally:
            stage.cluster.engine.docker("unpause", dead)
        for rollout in hit:
            await until(lambda rollout=rollout: _judged(stage, rollout), "the verdict")  # type: ignore[misc]
        verdicts = {rollout: await stage.use_cases.verdict(RolloutId("acme", rollout)) for rollout in rollouts}
        spared = [rollout for rollout in rollouts if rollout not in hit]
        answers = [await stage.shell(rollout, "true") for rollout in spared]

    assert {(verdicts[rollout].word, verdicts[rollout].cause) for rollout in hit} == {("masked", "node_lost")}
    assert all(verdicts[rollout].word is None for rollout in spared)
    assert all(answer.outcome == "ok" for answer in answers)


async def _judged(stage: Stage, rollout: str) -> bool:
    return (await stage.use_cases.verdict(RolloutId("acme", rollout))).word is not None


async def _some(stage: Stage) -> bool:
    return bool(await stage.pods())


async def _leads(one: Deployed) -> None:
    async def look() -> bool:
        return bool(one.events("election_won"))

    await until(look, "the second to lead")


async def _stepped_down(one: Deployed) -> None:
    async def look() -> bool:
        return bool(one.events("leadership_lost"))

    await until(look, "the first to step down")


def _api_server(cluster: Cluster, signal: str) -> None:
    (node,) = (name for name in cluster.nodes() if "control-plane" in name)
    cluster.engine.docker("exec", node, "sh", "-c", f"kill -{signal} $(pidof kube-apiserver)")
