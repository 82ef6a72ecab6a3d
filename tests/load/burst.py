"""
A step of training begins: new rollouts, all at the same instant, through two gateways, on the one-node kind cluster.

The floor, in the same run and by the same client, is one direct call to each
of as many pods of the same kind. Both sides open a connection for every call.
Then once more with half as many warm pods, where the rest has to queue until the
pool is refilled: how long the last answer took after the last pod was ready; and
how long in all, compared with the second half of the first fill, since a start
takes longer the more pods there are. With ``--chart`` the gateways are those that the
chart installs, else processes here.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import uvloop

from lab.talk import LabError, say
from load import ground
from load.frame import LATENCY_HEADER, Outcome, latency_row, quantile
from load.served import ENVIRONMENT, TENANT, by_chart, by_processes, want
from rollcage.core.ids import RolloutId, RunId
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.store.claims import Claim
from rollcage.store.records import Subject
from rollcage.wire.tokens import Scope

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from load.served import Served
    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.store.records import Sandbox
    from rollcage.store.store import Store
    from rollcage.wire.tokens import Signer

RUN: Final = "bench"
HALF_AN_HOUR: Final = timedelta(minutes=30)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rollouts", type=int, default=500)
    parser.add_argument("--chart", action="store_true", help="through a release of the chart, installed for this")


def measure(options: argparse.Namespace) -> Outcome:
    """Let a step begin, with a full pool and with half of one."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_measure(ground.kubeconfig(), options.rollouts, chart=options.chart))


@dataclass(frozen=True)
class Request:
    """One HTTP request, ready to be sent."""

    address: tuple[str, int]
    data: bytes


@dataclass(frozen=True)
class Answer:
    """What came of it, and when, in seconds from the common start."""

    after: float
    good: bool
    text: str


async def _measure(kubeconfig: Path, rollouts: int, *, chart: bool) -> Outcome:
    served = by_chart if chart else by_processes
    async with connected(kubeconfig) as api, served(api, kubeconfig, rollouts) as service:
        say(f"filling a pool of {rollouts}")
        filling = await ground.filled(service.store, ENVIRONMENT, rollouts)
        await ground.quiet()
        floor = await _floor(service, rollouts)
        ended = time.monotonic()
        await _over(service, "floor", rollouts)
        await ground.filled(service.store, ENVIRONMENT, rollouts)
        renewed = time.monotonic() - ended
        await ground.quiet()
        burst = await _burst(service, "full", rollouts)
        distinct = await _sandboxes(service.store, "full", rollouts)
        # Half of it, and nothing left of what was.
        await want(api, service.environments, rollouts // 2)
        await _over(service, "full", rollouts)
        await ground.filled(service.store, ENVIRONMENT, rollouts // 2)
        await ground.quiet()
        asked = time.time()
        queued = await _burst(service, "half", rollouts)
        refilled = await _ready_since(api, service.pods) - asked
        await want(api, service.environments, 0)
        await _over(service, "half", rollouts)
        writes = service.writes()
        # The chart's gateways have no token for the API server, so there is nothing to count.
        on_claim_path = {"api_writes_on_claim_path": service.data_plane()} if service.data_plane else {}
    needed = second_half(filling)
    times, late = (sorted(one.after for one in answers) for answers in (burst, queued))
    return Outcome(
        figures={
            "burst_ratio": round(times[-1] / max(one.after for one in floor), 3),
            "distinct_sandboxes": len(distinct),
            "failed": sum(not one.good for one in (*floor, *burst)),
            **on_claim_path,
            # Every pod that was made counts, also those that no rollout got.
            "api_writes_per_rollout": round(sum(writes.values()) / (3 * rollouts), 2),
            "p50_ms": round(1000 * quantile(times, 0.5)),
            "p99_ms": round(1000 * quantile(times, 0.99)),
            "fill_s": round(filling[-1], 1),
            "renewal_s": round(renewed, 1),
            "half_failed": sum(not one.good for one in queued),
            "half_last_s": round(late[-1], 1),
            # To the second, as Kubernetes tells it.
            "half_last_after_refill_s": round(late[-1] - refilled, 1),
            "half_refill_needs_s": round(needed, 1),
            "half_wait_ratio": round(late[-1] / needed, 3),
        },
        header=LATENCY_HEADER,
        rows=[
            latency_row("direct", [one.after for one in floor]),
            latency_row("two gateways", times),
            latency_row("half a pool", late),
        ],
        notes=[
            f"{rollouts} rollouts; written by the controller: {dict(writes)}",
            *_failures((*floor, *burst, *queued)),
        ],
    )


def second_half(filling: Sequence[float]) -> float:
    """Return how long a pool that was half full took to be full, from when each of its sandboxes was ready."""
    return filling[-1] - filling[len(filling) // 2 - 1]


async def _ready_since(api: Api, pods: str) -> float:
    """Return when the last of the pods became ready, in seconds since 1970."""
    found = (await api.request("GET", pods))["items"]
    return max(
        datetime.fromisoformat(condition["lastTransitionTime"]).timestamp()
        for pod in found
        for condition in pod["status"]["conditions"]
        if condition["type"] == "Ready" and condition["status"] == "True"
    )


async def _floor(service: Served, count: int) -> list[Answer]:
    say(f"{count} direct calls at once")
    subjects = [
        Subject(rollout.key, ENVIRONMENT, rollout, RunId(TENANT, RUN))
        for rollout in (RolloutId(TENANT, f"floor-{number}") for number in range(count))
    ]
    claims = (service.store.claims.claim(Claim(one, wait=HALF_AN_HOUR, max_waiting=count)) for one in subjects)
    sandboxes = await asyncio.gather(*claims)
    requests = [_direct(service.signer, one, sandbox) for one, sandbox in zip(subjects, sandboxes, strict=True)]
    return _said(await _all_at_once(requests))


async def _burst(service: Served, name: str, count: int) -> list[Answer]:
    say(f"{count} first calls at once through {len(service.gateways)} gateways")
    gates = service.gateways
    requests = [_called(gates[number % len(gates)], service.token, f"{name}-{number}") for number in range(count)]
    return _said(await _all_at_once(requests))


def _said(answers: list[Answer]) -> list[Answer]:
    """Say at once what the table says after half an hour."""
    failed = sum(not one.good for one in answers)
    say(f"the last answer came after {max(one.after for one in answers):.2f} s, {failed} failed")
    return answers


def _direct(signer: Signer, subject: Subject, sandbox: Sandbox) -> Request:
    where = urlsplit(sandbox.address)
    authorization = signer.authorization(
        sandbox=sandbox.name,
        rollout=subject.key,
        scope=Scope.ACT,
        now=datetime.now(UTC),
        lifetime=timedelta(minutes=10),
    )
    call = {"call_id": "first", "tool": "shell", "arguments": {"command": "true"}}
    assert where.hostname
    assert where.port
    return Request((where.hostname, where.port), _post("/v1/calls", authorization, call))


def _called(address: tuple[str, int], token: str, trace: str) -> Request:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "shell",
        "arguments": json.dumps({"command": "true"}),
        "trace_id": trace,
    }
    path = f"/agent-rft/runs/{RUN}/environments/{ENVIRONMENT}/tools"
    return Request(address, _post(path, f"Bearer {token}", call))


def _post(path: str, authorization: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: {authorization}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + content


async def _all_at_once(requests: Sequence[Request]) -> list[Answer]:
    began = time.perf_counter()
    return await asyncio.gather(*(_answered(one, began) for one in requests))


async def _answered(request: Request, began: float) -> Answer:
    try:
        reader, writer = await asyncio.open_connection(*request.address)
        writer.write(request.data)
        answer = await reader.read()
        writer.close()
    except OSError as error:
        return Answer(time.perf_counter() - began, good=False, text=str(error))
    return Answer(time.perf_counter() - began, good=answer.startswith(b"HTTP/1.1 200"), text=answer[-500:].decode())


async def _over(service: Served, name: str, count: int) -> None:
    """End the rollouts, and wait until their pods are gone."""
    say("ending them")
    body = {"environment": ENVIRONMENT, "run": RUN}
    gates = service.gateways
    for first in range(0, count, 50):
        batch = range(first, min(first + 50, count))
        ends = [f"/v1/rollouts/{name}-{number}/finish" for number in batch]
        answers = await _all_at_once(
            [
                Request(gates[i % len(gates)], _post(path, f"Bearer {service.token}", body))
                for i, path in enumerate(ends)
            ]
        )
        if bad := [one.text for one in answers if not one.good]:
            raise LabError(f"a rollout could not be finished: {bad[0]}")
    began = time.monotonic()
    while (await service.store.pools.counts(ENVIRONMENT)).spent:
        ground.in_time(began, "pods are still there")
        await asyncio.sleep(1)


async def _sandboxes(store: Store, name: str, count: int) -> set[str]:
    records = [await store.rollouts.get(RolloutId(TENANT, f"{name}-{number}").key) for number in range(count)]
    return {record.sandbox.name for record in records if record and record.sandbox}


def _failures(answers: Sequence[Answer]) -> list[str]:
    return sorted({one.text for one in answers if not one.good})[:3]
