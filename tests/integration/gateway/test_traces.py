"""Calls as a collector of traces sees them, and what a collector that is away does to calls: nothing."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from support.collector import Collector, collecting
from support.counts import sees
from support.gateways import TOKEN
from support.waiting import until
from support.wired_gateway import Wired, wired

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.stage import Stage

TRACE = "trace_5f0c2b8e9d1a47c3b6e2f4a8d7c9e013"
# More than it takes to be marked while it runs.
LONGER = "sleep 0.1"
QUICK = {"ROLLCAGE_TRACES": "true", "OTEL_BSP_SCHEDULE_DELAY": "50"}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as one:
        yield one


@pytest.fixture
async def home(stage: Stage, tmp_path: Path) -> Path:
    """Where a gateway's files go; by then its environment is known."""
    await stage.store.as_leader(1).environments.publish({"small": stage.environment})
    return tmp_path


@pytest.fixture
def gateway(stage: Stage, home: Path, collector: Collector) -> Iterator[Wired]:
    with wired(stage, home, {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as one:
        yield one


async def test_each_call_is_a_span_with_its_steps_in_its_rollouts_trace(
    stage: Stage, gateway: Wired, collector: Collector
) -> None:
    await stage.sandbox("sbx-1")
    assert gateway.shell("true", "c1", trace=TRACE).status == 200
    assert gateway.shell(f"{LONGER}; exit 3", "c2", trace=TRACE).status == 200
    first, second = collector.calls(2)
    assert [collector.steps(one) for one in (first, second)] == [
        ["claim", "send", "record"],
        ["send", "mark", "record"],
    ]
    assert {first.trace, second.trace} == {TRACE.removeprefix("trace_")}
    assert (first.name, first.parent, first.service, first.error) == ("call shell", "", "rollcage-gateway", False)
    subject = {"rollout": TRACE, "run": "run-1", "environment": "small", "tool": "shell", "sandbox": "sbx-1"}
    told = {"replayed": False, "truncated": False}
    assert first.attributes == {
        f"rollcage.{k}": v for k, v in {**subject, **told, "call": "c1", "outcome": "ok"}.items()
    }
    assert second.attributes["rollcage.outcome"] == "failed"


async def test_a_repeated_call_says_so(stage: Stage, gateway: Wired, collector: Collector) -> None:
    await stage.sandbox("sbx-1")
    for _ in range(2):
        gateway.shell("true", "c1", trace=TRACE)
    _, again = collector.calls(2)
    assert again.attributes["rollcage.replayed"] is True
    # Sent to a sandbox that knew it, and found in the record.
    assert len(collector.steps(again)) == 2


async def test_a_trainers_own_trace_goes_on(stage: Stage, gateway: Wired, collector: Collector) -> None:
    await stage.sandbox("sbx-1")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    gateway.shell("true", "c1", trace=TRACE, headers={"traceparent": parent})
    [call] = collector.calls(1)
    assert (call.trace, call.parent) == ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")


@pytest.mark.parametrize("parent", ["", "nonsense", "00-" + "0" * 32 + "-b7ad6b7169203331-01", "00-" + "f" * 9000])
async def test_a_trace_that_is_none_counts_as_not_sent(
    stage: Stage, gateway: Wired, collector: Collector, parent: str
) -> None:
    await stage.sandbox("sbx-1")
    assert gateway.shell("true", "c1", trace=TRACE, headers={"traceparent": parent}).status == 200
    [call] = collector.calls(1)
    assert call.trace == TRACE.removeprefix("trace_")


async def test_a_trainer_that_does_not_want_to_be_traced_is_not(
    stage: Stage, gateway: Wired, collector: Collector
) -> None:
    await stage.sandbox("sbx-1")
    unwanted = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
    gateway.shell("true", "c1", trace=TRACE, headers={"traceparent": unwanted})
    gateway.shell("true", "c2", trace=TRACE)
    [call] = collector.calls(1)
    assert call.attributes["rollcage.call"] == "c2"


async def test_what_the_infrastructure_broke_is_an_error_and_what_the_model_did_is_none(
    stage: Stage, gateway: Wired, collector: Collector
) -> None:
    server = await stage.sandbox("sbx-1")
    gateway.shell("exit 1", "c1", trace=TRACE)
    server.process.kill()
    server.process.wait()
    assert gateway.shell("true", "c2", trace=TRACE).status == 503
    models, ours = collector.calls(2)
    assert not models.error
    assert ours.error
    assert (ours.attributes["rollcage.outcome"], ours.attributes["error.type"]) == ("infra", "masked")
    assert ours.attributes["rollcage.cause"]


async def test_neither_arguments_nor_outputs_nor_secrets_are_told(
    stage: Stage, gateway: Wired, collector: Collector
) -> None:
    server = await stage.sandbox("sbx-1")
    gateway.shell("echo pass-word-$((40+2))", "c1", trace=TRACE)
    made_up = {"name": "pass-word tool", "arguments": "{pass-word", "trace_id": TRACE, "call_id": "c2"}
    gateway.ask("POST", f"/agent-rft/tokens/{TOKEN}/environments/small/tools", made_up)
    server.process.kill()
    server.process.wait()
    gateway.shell("echo pass-word", "c3", trace=TRACE)
    _, unknown, _ = collector.calls(3)
    assert (unknown.name, unknown.attributes["rollcage.tool"]) == ("call unknown", "unknown")
    everything = b"".join(collector.bodies)
    assert b"sbx-1" in everything
    assert b"pass-word" not in everything
    assert TOKEN.encode() not in everything


async def test_the_last_spans_are_sent_when_the_gateway_stops(stage: Stage, home: Path, collector: Collector) -> None:
    await stage.sandbox("sbx-1")
    never = {**QUICK, "OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    with wired(stage, home, never) as gateway:
        gateway.shell("true", "c1", trace=TRACE)
        assert collector.spans == []
    [call] = collector.calls(1)
    assert collector.steps(call) == ["claim", "send", "record"]


@sees("spans_dropped")
async def test_calls_do_not_notice_that_no_collector_is_there(stage: Stage, home: Path) -> None:
    await stage.sandbox("sbx-1")
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    impatient = {**QUICK, "OTEL_EXPORTER_OTLP_ENDPOINT": nobody, "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    with wired(stage, home, impatient) as gateway:
        for call in range(3):
            assert gateway.shell(f"{LONGER}; echo hi", f"c{call}", trace=TRACE).json()["output"] == "hi\n"
        until(lambda: gateway.metric('rollcage_spans_dropped_total{reason="not_taken"}') >= 3)
        assert gateway.shell("echo hi", "late", trace=TRACE).status == 200


async def test_calls_do_not_wait_for_a_collector_that_stands_still(
    stage: Stage, home: Path, collector: Collector
) -> None:
    await stage.sandbox("sbx-1")
    collector.go_on.clear()
    small = {"OTEL_BSP_MAX_QUEUE_SIZE": "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "4", "OTEL_EXPORTER_OTLP_TIMEOUT": "600"}
    with wired(stage, home, {**QUICK, **small, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as gateway:
        gateway.shell("true", "first", trace=TRACE)
        until(lambda: collector.held > 0)
        for call in range(10):
            assert gateway.shell(f"{LONGER}; echo hi", f"c{call}", trace=TRACE).json()["output"] == "hi\n"
        # Four spans are with the collector or wait in the queue, twice; the others of eleven calls are gone.
        until(lambda: gateway.metric('rollcage_spans_dropped_total{reason="queue_full"}') == 11 * 4 - 8)
        collector.go_on.set()
        until(lambda: len(collector.spans) == 8)


def test_nothing_of_it_is_imported_unless_it_is_asked_for() -> None:
    ours = "('opentelemetry.exporter', 'opentelemetry.sdk.trace', 'rollcage.telemetry.traces')"
    look = f"import sys, rollcage.wiring.__main__; print([name for name in sys.modules if name.startswith({ours})])"
    found = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == "[]"
