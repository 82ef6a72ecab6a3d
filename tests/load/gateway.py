"""
A call through the gateway against the same call made to its sandbox directly.

Both sides run the same command in the same toolserver on this machine, in
turns, one call after the other on a kept connection. What lies between them is
the gateway: HTTP, token, route, record in Redis, answer. Redis, gateway and
sandboxes are processes of their own, started for the run. A gateway of another
checkout can take its turns too: as a second replica, which shares all the rest.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from lab.images import build_toolserver
from lab.places import ROOT, scratch
from lab.talk import LabError
from load.frame import LATENCY_HEADER, Outcome, latency_row, quantile
from rollcage.core.ids import RolloutId
from rollcage.store.records import Sandbox
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from support.bare_wire import Wire
from support.gateway_process import TENANT, started
from support.gateways import TOKEN
from support.local_toolserver import Launcher
from support.stage import address
from support.waiting import until

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from support.gateway_process import Running
    from support.local_toolserver import LocalToolserver

SHELL = ["/bin/sh", "-c"]
NOTHING, FIFTY_MS = "true", "sleep 0.05"
TOOLS = "/agent-rft/runs/bench/environments/small/tools"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--each", type=int, default=25, help="calls of each side in a round")
    parser.add_argument("--slow-rounds", type=int, default=20, help="rounds with a command of 50 ms, 5 calls each")
    parser.add_argument("--python", default=sys.executable, help="what runs the gateway, e.g. the service image's")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="measure the gateway of another one as well")
    parser.add_argument(
        "--placed",
        action="store_true",
        help="keep the sandboxes on one processor and all the rest on another: then it is the gateway's own work that"
        " counts, not where the kernel wakes whom",
    )
    parser.add_argument("--callers", type=int, default=8, help="rollouts at once, for calls per second")


def measure(options: argparse.Namespace) -> Outcome:
    """Start everything and measure."""
    with scratch() as tmp, ExitStack() as stack:
        build_toolserver(tmp / "toolserver")
        runner = stack.enter_context(asyncio.Runner())
        services = AsyncExitStack()
        stack.callback(lambda: runner.run(services.aclose()))

        redis = runner.run(services.enter_async_context(running(ServerConfig(find_executable()))))
        servers = [_sandbox(stack, tmp, f"sbx-{number}") for number in range(options.callers)]
        runner.run(_offer(redis.url, servers))
        gateways = [
            stack.enter_context(started(redis.url, python=options.python, checkout=checkout.resolve()))
            for checkout in (ROOT, options.beside)
            if checkout
        ]
        gateway = gateways[0]
        if options.placed:
            _place(
                [server.process.pid for server in servers],
                apart_from=[redis.pid, *(one.process.pid for one in gateways)],
            )
        # In the same sandbox: two toolservers differ by as much as there is to measure.
        through, *beside = (_Through(one, "trace-0", side=side) for side, one in enumerate(gateways))
        for side in (through, *beside):
            side.call(NOTHING)
        home = runner.run(_home(redis.url, "trace-0"))
        direct = _Direct(next(server for server in servers if server.sandbox == home), "trace-0")
        quick = _in_turns([direct, through, *beside], NOTHING, rounds=options.rounds, each=options.each)
        slow = _in_turns([direct, through], FIFTY_MS, rounds=options.slow_rounds, each=5)
        # Not sooner: the gateway hangs up on whoever says nothing for long.
        rollouts = [through, *(_Through(gateway, f"trace-{number}") for number in range(1, options.callers))]
        for rollout in rollouts:
            rollout.call(NOTHING)
        rate, per_core = _throughput(gateway, rollouts, each=4 * options.each)
        for wire in (direct.wire, *(rollout.wire for rollout in (*rollouts, *beside))):
            wire.close()
    return Outcome(
        figures={
            "overhead_ratio_p50": _ratio(*quick[:2]),
            "overhead_ratio_p50_50ms": _ratio(*slow),
            # Where other work was least in the way, of both sides.
            "overhead_ratio_p10": round(quantile(quick[1], 0.1) / quantile(quick[0], 0.1), 3),
            "overhead_ms_p50": round(1000 * (statistics.median(quick[1]) - statistics.median(quick[0])), 3),
            "calls_per_second_per_core": round(per_core),
            "calls_per_second": round(rate),
            **({"beside_ratio_p50": _ratio(quick[0], quick[2])} if beside else {}),
        },
        header=LATENCY_HEADER,
        rows=[
            latency_row("no-op, direct", quick[0]),
            latency_row("no-op, gateway", quick[1]),
            *(latency_row("no-op, gateway beside", calls) for calls in quick[2:]),
            latency_row("50 ms, direct", slow[0]),
            latency_row("50 ms, gateway", slow[1]),
        ],
        notes=[
            f"per core: calls by the gateway's own processor time; {options.callers} rollouts at once, one gateway",
        ],
    )


def _sandbox(stack: ExitStack, tmp: Path, name: str) -> LocalToolserver:
    workdir = tmp / name
    workdir.mkdir()
    server = stack.enter_context(Launcher(tmp / "toolserver", workdir, tmp / "log").start(sandbox=name, shell=SHELL))
    until(server.ready)
    return server


def _place(sandboxes: list[int], *, apart_from: list[int]) -> None:
    """Keep sandboxes on one processor, and the others with whoever measures on another one."""
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        raise LabError("there is only one processor")
    for pids, processor in ((sandboxes, others[0]), ([os.getpid(), *apart_from], first)):
        for pid in pids:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), {processor})


async def _offer(url: str, servers: list[LocalToolserver]) -> None:
    """Let the store know all sandboxes, as a leader would."""
    async with open_store(Settings(url)) as store:
        leader = store.as_leader(1)
        await leader.recovery.begin("bench")
        await leader.recovery.complete("bench")
        for server in servers:
            await leader.pools.offer(Sandbox(server.sandbox, "small", address(server)))


async def _home(url: str, rollout: str) -> str:
    """Return the sandbox that a rollout has."""
    async with open_store(Settings(url)) as store:
        found = await store.rollouts.get(RolloutId(TENANT, rollout).key)
        assert found
        assert found.sandbox
        return found.sandbox.name


class _Direct:
    """Calls a rollout's sandbox as the gateway would."""

    def __init__(self, server: LocalToolserver, rollout: str) -> None:
        self.wire = Wire(server.dial())
        authorization = server.of(RolloutId(TENANT, rollout).key).authorization()
        self._head = f"POST /v1/calls HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n"
        self._ids = itertools.count()

    def call(self, command: str) -> float:
        """Run a command, and return the seconds it took."""
        call = {"call_id": f"c{next(self._ids)}", "tool": "shell", "arguments": {"command": command}}
        took, answer = self.wire.timed(self._head, json.dumps(call))
        if json.loads(answer)["facts"]["exit_code"] != 0:
            raise AssertionError(answer)
        return took


class _Through:
    """Calls as the platform does, by ids that no other *side* has."""

    def __init__(self, gateway: Running, rollout: str, *, side: int = 0) -> None:
        self.wire = Wire(socket.create_connection(("127.0.0.1", gateway.port)))
        self._head = f"POST {TOOLS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
        self._ids = itertools.count()
        self._rollout = rollout
        self._side = side

    def call(self, command: str) -> float:
        """Run a command, and return the seconds it took."""
        number = f"{self._side}_{next(self._ids)}"
        call = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": "shell",
            "arguments": json.dumps({"command": command}),
            "trace_id": self._rollout,
            "item": {"question": "?"},
        }
        took, answer = self.wire.timed(self._head, json.dumps(call))
        if json.loads(answer)["output"] != "":
            raise AssertionError(answer)
        return took


def _in_turns(sides: Sequence[_Direct | _Through], command: str, *, rounds: int, each: int) -> list[list[float]]:
    """Return the seconds of every call of each side."""
    seconds: list[list[float]] = [[] for _ in sides]
    for number in range(-2, rounds):
        for side, calls in zip(sides, seconds, strict=True):
            now = [side.call(command) for _ in range(each)]
            if number >= 0:  # the first rounds warm up
                calls.extend(now)
    return seconds


def _throughput(gateway: Running, rollouts: list[_Through], *, each: int) -> tuple[float, float]:
    """Return calls per second, and per second of the gateway's processor time."""

    def call_many(rollout: _Through) -> None:
        for _ in range(each):
            rollout.call(NOTHING)

    began, used = time.perf_counter(), gateway.cpu_seconds()
    with ThreadPoolExecutor(len(rollouts)) as pool:
        list(pool.map(call_many, rollouts))
    calls = each * len(rollouts)
    return calls / (time.perf_counter() - began), calls / (gateway.cpu_seconds() - used)


def _ratio(direct: list[float], through: list[float]) -> float:
    return round(statistics.median(through) / statistics.median(direct), 3)
