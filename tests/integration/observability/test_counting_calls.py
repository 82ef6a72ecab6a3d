"""What happens to calls is counted where it happens."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from integration.rollouts.test_losses import WAITING, exists, kill, spent
from rollcage.core.errors import ClaimTimedOut
from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause
from rollcage.rollouts.archivist import Archivist
from rollcage.rollouts.errors import Masked
from rollcage.rollouts.usecases import open_use_cases
from rollcage.store.records import Subject, Verdict
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.telemetry.witness import MetricsWitness
from support.counts import Counts, sees
from support.frail_line import frail_line
from support.stage import BRISK, ENVIRONMENT, RUN, TENANT, address
from support.toolserver import SIGNER
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from redis.asyncio import Redis

    from rollcage.telemetry.metrics import Metrics
    from support.stage import Stage

# Far more than the store needs to answer, far less than the test may take.
SHORT = timedelta(seconds=2)


@sees("calls", "call_seconds", "output_bytes")
async def test_an_answered_call_is_counted_with_its_time_and_the_bytes_of_its_output(
    stage: Stage, counts: Counts
) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "printf é")
    await stage.shell("c2", "false")
    await counts.come_to(1, "calls_total", tool="shell", outcome="failed")
    assert counts("calls_total", tool="shell", outcome="ok") == 1
    assert counts("call_seconds_count", tool="shell") == 2
    assert counts("output_bytes_bucket", tool="shell", le="0.0") == 0
    assert counts("output_bytes_sum", tool="shell") >= 2


@sees("outputs_truncated")
async def test_a_cut_output_is_counted(stage: Stage, counts: Counts) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "head -c 3000000 /dev/zero | tr '\\0' x")
    await counts.come_to(1, "outputs_truncated_total", tool="shell")


@sees("calls_replayed")
async def test_a_repeated_call_is_counted_as_a_replay_and_not_as_a_call(stage: Stage, counts: Counts) -> None:
    await stage.sandbox("sbx-1")
    for _ in range(3):
        await stage.shell("c1")
    await counts.come_to(2, "calls_replayed_total")
    assert counts("calls_total", tool="shell", outcome="ok") == 1


@sees("calls_maybe_delivered")
async def test_a_call_whose_answer_is_lost_is_counted_although_its_result_is_found(
    stage: Stage, counts: Counts
) -> None:
    async with frail_line(stage) as line:
        call = asyncio.create_task(stage.shell("c1", WAITING))
        await eventually(lambda: exists(stage, "on"))
        await line.cut()
        line.mend()
        (stage.workdir("sbx-1") / "go").touch()
        assert (await call).output == "done\n"
    assert counts("calls_maybe_delivered_total", environment=ENVIRONMENT) == 1


@sees("misroutes_refused", "rollouts_moved")
async def test_a_call_that_came_to_a_stranger_is_counted_and_so_is_the_move(stage: Stage, counts: Counts) -> None:
    await stage.offer("sbx-1", address=address(stage.start("stranger")))
    first = asyncio.create_task(stage.shell("c1"))
    await eventually(lambda: spent(stage, "sbx-1"))
    await stage.sandbox("sbx-2")
    await first
    assert counts("queue_seconds_count", environment=ENVIRONMENT) == 1
    assert counts("misroutes_refused_total", environment=ENVIRONMENT) == 1
    assert counts("rollouts_moved_total", environment=ENVIRONMENT) == 1


@sees("call_failures", "infra_failures", "verdicts", "rollout_calls")
async def test_a_rollout_that_its_sandbox_failed_is_ours_by_cause_and_so_is_the_call(
    stage: Stage, counts: Counts
) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1")
    kill(server)
    with pytest.raises(Masked) as masked:
        await stage.shell("c2")
    # Which of them depends on whether the gateway had noticed that its connection is dead.
    cause = masked.value.cause
    assert cause in {Cause.UNREACHABLE, Cause.ANSWER_LOST}
    assert counts("calls_total", tool="shell", outcome="infra") == 1
    assert counts("call_seconds_count", tool="shell") == 2
    assert counts("call_failures_total", tool="shell", cause=cause) == 1
    assert counts("infra_failures_total", environment=ENVIRONMENT, cause=cause) == 1
    assert counts("verdicts_total", environment=ENVIRONMENT, verdict="masked", cause=cause) == 1
    assert counts("rollout_calls_sum", environment=ENVIRONMENT, verdict="masked") == 2


@sees("verdicts", "rollout_calls")
async def test_a_finished_rollout_is_counted_once_with_its_calls(stage: Stage, counts: Counts) -> None:
    await stage.sandbox("sbx-1")
    for call in ("c1", "c2", "c3"):
        await stage.shell(call)
    for _ in range(2):
        await stage.use_cases.finish(RolloutId(TENANT, "r1"), run=RUN, environment=ENVIRONMENT)
    assert counts("verdicts_total", environment=ENVIRONMENT, verdict="trainable", cause="finished") == 1
    assert counts("rollout_calls_count", environment=ENVIRONMENT, verdict="trainable") == 1
    assert counts("rollout_calls_sum", environment=ENVIRONMENT, verdict="trainable") == 3


@sees("claim_seconds")
async def test_a_claim_is_counted_and_one_that_found_a_sandbox_ready_stood_in_no_line(
    stage: Stage, counts: Counts
) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    await stage.shell("c2")
    assert counts("claim_seconds_count", environment=ENVIRONMENT) == 1
    assert counts("queue_seconds_count", environment=ENVIRONMENT) == 0


@sees("queue_seconds")
async def test_a_rollout_that_stood_in_line_is_counted_with_its_wait(stage: Stage, counts: Counts) -> None:
    first = asyncio.create_task(stage.shell("c1"))
    await eventually(lambda: _waits(stage))
    await stage.sandbox("sbx-1")
    await first
    assert counts("queue_seconds_count", environment=ENVIRONMENT) == 1
    assert (
        0 < counts("queue_seconds_sum", environment=ENVIRONMENT) <= counts("claim_seconds_sum", environment=ENVIRONMENT)
    )


@sees("queue_seconds", "call_failures")
async def test_a_rollout_that_stood_in_line_in_vain_is_counted_too(stage: Stage, counts: Counts) -> None:
    with pytest.raises(ClaimTimedOut):
        await stage.shell("c1", within=BRISK.reserve + SHORT)
    assert counts("queue_seconds_count", environment=ENVIRONMENT) == 1
    assert counts("call_failures_total", tool="shell", cause="claim_timed_out") == 1
    assert counts("calls_total", tool="shell", outcome="infra") == 1


@sees("store_bypassed", "records_dropped")
async def test_calls_without_redis_are_counted_and_so_are_results_that_find_their_rollout_over(
    stage: Stage, counts: Counts, redis: Redis
) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    await redis.flushall()
    await stage.shell("c2")
    assert counts("store_bypassed_total", environment=ENVIRONMENT) == 1

    leader = stage.store.as_leader(2)
    await leader.recovery.begin("g2")
    await stage.store.rollouts.end(
        Subject.of(RolloutId(TENANT, "r1"), run=RUN, environment=ENVIRONMENT), Verdict("abandoned", by="test")
    )
    await leader.recovery.complete("g2")
    await eventually(lambda: _is(counts("records_dropped_total", environment=ENVIRONMENT) == 1))


@sees("archives")
async def test_rollouts_written_to_the_archive_are_counted_and_so_are_those_that_could_not_be(
    stage: Stage, counts: Counts, metrics: Metrics, tmp_path: Path
) -> None:
    def archivist(place: Path) -> Archivist:
        return Archivist(str(place), store=stage.store, use_cases=stage.use_cases, metrics=metrics)

    nowhere = tmp_path / "file"
    nowhere.touch()
    await archivist(tmp_path).round(rest=timedelta())
    for rollout, place, result in (("r1", nowhere, "failed"), ("r2", tmp_path, "written")):
        await stage.use_cases.finish(RolloutId(TENANT, rollout), run=RUN, environment=ENVIRONMENT)
        await archivist(place).round(rest=timedelta())
        assert counts("archives_total", result=result) == 1


async def test_a_call_that_its_caller_should_not_have_made_is_not_ours(stage: Stage, counts: Counts) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "true")
    with pytest.raises(Exception, match="c1"):
        await stage.shell("c1", "false")
    assert counts("calls_total", tool="shell", outcome="infra") == 0


async def test_a_new_rollout_while_redis_is_away_is_ours(stage: Stage, metrics: Metrics) -> None:
    async with running(ServerConfig(find_executable())) as server:
        settings = Settings(server.url, timeout=timedelta(seconds=0.5))
        witness = MetricsWitness(metrics, custom_tools=lambda _: ())
        async with (
            open_store(settings) as store,
            open_use_cases(store, SIGNER, witness=witness, patience=BRISK) as cases,
        ):
            os.kill(server.pid, signal.SIGSTOP)
            try:
                with pytest.raises(Exception, match="Redis"):
                    await cases.act(stage.action("c1"))
            finally:
                os.kill(server.pid, signal.SIGCONT)
    assert Counts(metrics)("call_failures_total", tool="shell", cause="store_unavailable") == 1


async def _waits(stage: Stage) -> bool:
    return (await stage.store.pools.counts(ENVIRONMENT)).waiting == 1


async def _is(truth: bool) -> bool:  # noqa: FBT001 - it is the answer
    return truth
