"""What is asked of a gateway, and of Redis, is counted; and no metric is declared that nobody was seen to count."""

from __future__ import annotations

import asyncio
import os
import signal
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from integration.gateway import test_traces
from integration.observability import test_counting_calls, test_counting_grades, test_counting_pools
from rollcage.core.errors import StoreUnavailable
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits
from rollcage.gateway.tenants import Quotas
from rollcage.gateway.tenants_file import TenantsFile
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.telemetry.metrics import Metrics
from rollcage.wiring.pulse import pulse
from support.certificates import certificates_for
from support.counts import SEEN, Counts, sees
from support.encrypted import encrypted
from support.gateways import TOKEN, Caller, all_is_well, parts
from support.pools import until
from support.scripted_use_cases import Scripted, echo

if TYPE_CHECKING:
    from pathlib import Path

    from rollcage.gateway.ports import Parts
    from rollcage.rollouts.actions import Action, Answer
    from rollcage.store.server import Server

CALL = {"trace_id": "r1", "call_id": "c1", "name": "shell", "arguments": '{"command":"true"}'}
TOOLS = "/agent-rft/environments/small/tools"


def told(made: Parts) -> tuple[Caller, Counts]:
    return Caller(gateway(made, checks=all_is_well)), Counts(made.metrics)


@sees("requests")
async def test_requests_are_counted_by_dialect_and_what_the_cluster_asks_apart() -> None:
    ask, counts = told(parts())
    await ask("POST", TOOLS, CALL)
    await ask("GET", "/v1/environments")
    await ask("GET", "/metrics")
    await ask("GET", "/v1/nothing")
    assert counts("requests_total", dialect="agent_rft", status="2xx") == 1
    assert counts("requests_total", dialect="native", status="2xx") == 1
    assert counts("requests_total", dialect="operations", status="2xx") == 1
    assert counts("requests_total", dialect="native", status="4xx") == 1


@sees("auth_failures")
@pytest.mark.parametrize(("headers", "reason"), [({}, "missing"), ({"authorization": "Bearer no"}, "wrong")])
async def test_requests_that_are_not_let_in_are_counted(headers: dict[str, str], reason: str) -> None:
    ask, counts = told(parts())
    await ask("POST", TOOLS, CALL, headers=headers)
    assert counts("auth_failures_total", reason=reason) == 1


@sees("requests_refused")
@pytest.mark.parametrize(
    ("bounds", "limit"), [(Limits(in_flight_calls=0), "in_flight"), (Limits(rft_body_bytes=10), "body")]
)
async def test_requests_over_a_bound_are_counted(bounds: Limits, limit: str) -> None:
    ask, counts = told(parts(limits=bounds))
    await ask("POST", TOOLS, CALL)
    assert counts("requests_refused_total", limit=limit) == 1


@sees("requests_refused")
async def test_bodies_that_are_too_large_are_counted_in_every_dialect() -> None:
    ask, counts = told(parts(limits=Limits(native_body_bytes=10)))
    await ask("POST", "/v1/rollouts/r1/calls", CALL)
    assert counts("requests_refused_total", limit="body") == 1


@sees("requests_refused")
async def test_requests_over_a_tenants_quota_are_counted() -> None:
    made = parts(quotas=Quotas(in_flight_calls=1))
    ask, counts = told(made)
    holder = made.tenants.holder(TOKEN)
    assert holder
    made.admission.enter(holder)
    await ask("POST", TOOLS, CALL)
    assert counts("requests_refused_total", limit="tenant") == 1


@sees("requests_in_flight")
async def test_requests_being_served_are_counted_until_they_are_answered() -> None:
    arrived, go = asyncio.Event(), asyncio.Event()

    async def slow(action: Action) -> Answer:
        arrived.set()
        await go.wait()
        return await echo(action)

    ask, counts = told(parts(Scripted(slow)))
    asking = asyncio.create_task(ask("POST", TOOLS, CALL))
    await arrived.wait()
    assert counts("requests_in_flight") == 1
    go.set()
    await asking
    assert counts("requests_in_flight") == 0


@sees("store_up")
async def test_whether_redis_answers_is_seen() -> None:
    metrics = Metrics(CollectorRegistry())
    counts = Counts(metrics)

    async def shows(value: float) -> bool:
        return counts("store_up") == value

    async with running(ServerConfig(find_executable())) as server:
        settings = Settings(server.url, timeout=timedelta(seconds=0.5))
        async with open_store(settings) as store, pulse(store, metrics, every=timedelta(milliseconds=20)):
            await until(lambda: shows(1), "Redis to be seen")
            os.kill(server.pid, signal.SIGSTOP)
            try:
                await until(lambda: shows(0), "Redis to be missed")
            finally:
                os.kill(server.pid, signal.SIGCONT)
            await until(lambda: shows(1), "Redis to be seen again")


@sees("store_certificate_expiry_timestamp_seconds")
async def test_when_the_certificate_of_redis_expires_is_seen_and_seen_again(server: Server, tmp_path: Path) -> None:
    metrics, now = Metrics(CollectorRegistry()), datetime.now(UTC).replace(microsecond=0)
    counts, ca = Counts(metrics), tmp_path / "ca.crt"
    ends = [now + timedelta(days=days) for days in (2, 90)]
    old, new = (certificates_for("127.0.0.1", until=end, authority_until=ends[-1]) for end in ends)
    over = certificates_for("127.0.0.1", until=now - timedelta(minutes=1))
    ca.write_bytes(old.authority + new.authority + over.authority)

    async def shows(end: datetime) -> bool:
        return counts("store_certificate_expiry_timestamp_seconds") == end.timestamp()

    async with (
        encrypted(server, old) as redis,
        open_store(Settings(redis.url, ca=ca)) as store,
        pulse(store, metrics, certificate_every=timedelta(milliseconds=20)),
    ):
        await until(lambda: shows(ends[0]), "the certificate to be seen")
        redis.show(new)
        await until(lambda: shows(ends[1]), "the renewed one to be seen")
        redis.show(over)
        with pytest.raises(StoreUnavailable):
            await store.certificate_expires()
        assert await shows(ends[1])


@sees("tenant_reloads", "tenants_stale")
async def test_a_tenants_file_that_is_read_again_is_counted(tmp_path: Path) -> None:
    path, metrics = tmp_path / "tenants.yaml", Metrics(CollectorRegistry())
    path.write_text("tenants: []")
    tenants = TenantsFile(path, metrics=metrics)
    path.write_text("nonsense: [")
    await tenants.look()
    counts = Counts(metrics)
    assert (counts("tenant_reloads_total", result="refused"), counts("tenants_stale")) == (1, 1)
    path.write_text("tenants: []  # mended")
    await tenants.look()
    assert (counts("tenant_reloads_total", result="taken"), counts("tenants_stale")) == (1, 0)


def test_every_metric_was_seen_counted() -> None:
    # Importing them is what notes their claims.
    assert all((test_counting_calls, test_counting_grades, test_counting_pools, test_traces))
    declared = {family.name.removeprefix("rollcage_") for family in Metrics(CollectorRegistry()).registry.collect()}
    assert declared - SEEN == set()
