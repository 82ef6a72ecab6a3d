"""
How long a claim takes with few and with many sandboxes ready, and how many there can be.

The sandboxes are simulated: names in a real Redis, started for the run, with no
pod behind them. What is measured is the store, from one process over a socket.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from load.frame import LATENCY_HEADER, Outcome, latency_row
from rollcage.core.ids import RolloutId
from rollcage.store.claims import Claim
from rollcage.store.records import Sandbox, Subject
from rollcage.store.server import ServerConfig, find_executable, running
from rollcage.store.settings import Settings
from rollcage.store.store import open_store

if TYPE_CHECKING:
    import argparse

    from rollcage.store.store import Store

FEW, MANY, BARE = "few", "many", "bare"

# A step's first calls arrive together, in about this number.
BURST = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--few", type=int, default=10, metavar="N", help="ready sandboxes on the one side")
    parser.add_argument("--many", type=int, default=5000, metavar="N", help="and on the other")
    parser.add_argument("--rounds", type=int, default=3000, metavar="N", help="claims timed on each side")
    parser.add_argument("--bursts", type=int, default=10, metavar="N", help=f"times that {BURST} claim at once")


def measure(options: argparse.Namespace) -> Outcome:
    """Run the benchmark."""
    return asyncio.run(_measured(options))


async def _measured(options: argparse.Namespace) -> Outcome:
    executable = find_executable()
    async with running(ServerConfig(executable)) as server, open_store(Settings(server.url)) as store:
        pool = _Pool(store)
        await pool.live()
        await pool.fill(FEW, options.few)
        await pool.fill(MANY, options.many)
        seconds = await _alternated(pool, rounds=options.rounds, warmup=options.rounds // 10)
        per_second = [await _burst(pool) for _ in range(options.bursts)]
    few, many = statistics.median(seconds[FEW]), statistics.median(seconds[MANY])
    return Outcome(
        figures={
            "flatness_ratio": round(many / few, 3),
            "claims_per_second": round(statistics.median(per_second)),
            "claim_p50_ms_few": round(1000 * few, 3),
            "claim_p50_ms_many": round(1000 * many, 3),
        },
        header=LATENCY_HEADER,
        rows=[
            latency_row(f"claim, {options.few} ready", seconds[FEW]),
            latency_row(f"claim, {options.many} ready", seconds[MANY]),
            latency_row("bare round trip", seconds[BARE]),
        ],
        notes=[
            f"simulated sandboxes; {executable.name} started for this run; one process",
            f"claims per second: median of {options.bursts} bursts of {BURST} at once",
        ],
    )


class _Pool:
    """A store and names that were never used before."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._leader = store.as_leader(1)
        self._numbers = count()

    async def live(self) -> None:
        await self._leader.recovery.begin("bench")
        await self._leader.recovery.complete("bench")

    async def fill(self, environment: str, number: int) -> None:
        names = [f"sandbox-{next(self._numbers)}" for _ in range(number)]
        offers = (self._leader.pools.offer(Sandbox(name, environment, "10.0.0.1:8080")) for name in names)
        await asyncio.gather(*offers)

    def claim(self, environment: str) -> Claim:
        rollout = RolloutId("bench", f"rollout-{next(self._numbers)}")
        subject = Subject.of(rollout, run="bench", environment=environment)
        return Claim(subject, wait=timedelta(), max_waiting=BURST)


async def _alternated(pool: _Pool, *, rounds: int, warmup: int) -> dict[str, list[float]]:
    """Time single claims in turns; each is made up for, untimed, so that the pools keep their sizes."""
    seconds: dict[str, list[float]] = {FEW: [], MANY: [], BARE: []}
    for number in range(-warmup, rounds):
        # First one side, then the other begins, so that neither always follows the same work.
        for environment in (FEW, MANY) if number % 2 else (MANY, FEW):
            claim = pool.claim(environment)
            began = time.perf_counter()
            await pool.store.claims.claim(claim)
            took = time.perf_counter() - began
            await pool.fill(environment, 1)
            if number >= 0:
                seconds[environment].append(took)
        began = time.perf_counter()
        await pool.store.standpoint()
        if number >= 0:
            seconds[BARE].append(time.perf_counter() - began)
    return seconds


async def _burst(pool: _Pool) -> float:
    claims = [pool.claim(MANY) for _ in range(BURST)]
    began = time.perf_counter()
    got = await asyncio.gather(*(pool.store.claims.claim(claim) for claim in claims))
    took = time.perf_counter() - began
    if len({sandbox.name for sandbox in got}) != BURST:
        raise AssertionError("two rollouts got the same sandbox")
    await pool.fill(MANY, BURST)
    return BURST / took
