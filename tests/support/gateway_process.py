"""
A gateway as a process of its own, over a real store: for measuring it, and for ending it with real signals.

Run as a program with the store's address; says its port on standard output and
serves until it is told to stop. One tenant, one environment, the tests' key.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import uvloop
from prometheus_client import CollectorRegistry

from lab.places import ROOT
from lab.talk import LabError
from rollcage.gateway.admission import Admission
from rollcage.gateway.app import gateway
from rollcage.gateway.ports import Limits, Parts
from rollcage.gateway.serving import Serving, server, tame_collector
from rollcage.gateway.tenants import Directory, Tenant, token_hash
from rollcage.rollouts.usecases import open_use_cases
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from rollcage.telemetry.logs import configure
from rollcage.telemetry.metrics import Metrics
from rollcage.telemetry.witness import MetricsWitness
from support.environments import environment
from support.gateways import TOKEN, all_is_well
from support.stage import BRISK
from support.toolserver import SIGNER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TENANT = "ours"

# Long enough to see that it serves on, short enough to wait for.
LINGER = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Running:
    """A gateway that was started."""

    process: subprocess.Popen[str]
    port: int

    def cpu_seconds(self) -> float:
        """Return how much processor time it has used."""
        with open(f"/proc/{self.process.pid}/stat") as file:  # noqa: PTH123 - a file of the kernel
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started(url: str, *, python: str = sys.executable, checkout: Path = ROOT) -> Iterator[Running]:
    """Lend a gateway, run by *python*, out of a *checkout* of this project; it is stopped when the block is left."""
    # Another Python brings its own standard library along.
    ours = [path for path in sys.path if not path.startswith(sys.base_prefix)]
    if checkout != ROOT:
        ours = [*(str(checkout / part) for part in ("service", "tests", "scripts")), *ours]
    with subprocess.Popen(
        [python, "-m", __name__, url],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ours)},
    ) as process:
        try:
            assert process.stdout
            port = process.stdout.readline()
            if not port:
                raise LabError(
                    f"the gateway of {checkout} did not start",
                    "see above; one that keeps its record otherwise cannot share a store",
                )
            yield Running(process, int(port))
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
        finally:
            process.kill()


async def _serve(url: str) -> None:
    # Whoever measures makes more calls in one rollout than any model.
    budgets = {"calls": 100_000, "wallSeconds": 1800, "lifetimeSeconds": 3600}
    metrics, environments = Metrics(CollectorRegistry()), {"small": environment(budgets=budgets)}
    metrics.environments.know(environments)
    witness = MetricsWitness(metrics, custom_tools=lambda _: ())
    limits = Limits()
    async with (
        open_store(Settings(url)) as store,
        open_use_cases(store, SIGNER, witness=witness, patience=BRISK) as use_cases,
    ):
        admission = Admission(most=limits.in_flight_calls, metrics=metrics)
        parts = Parts(
            use_cases=use_cases,
            records=store.rollouts,
            pools=store.pools,
            tenants=Directory.of([Tenant(name=TENANT, tokens=(token_hash(TOKEN),))]),
            environments=environments,
            metrics=metrics,
            admission=admission,
            limits=limits,
        )
        app = gateway(parts, checks=all_is_well)
        running = server(app, Serving(host="127.0.0.1", port=0, linger=LINGER), admission=admission)
        serving = asyncio.create_task(running.serve())
        while not running.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        print(running.servers[0].sockets[0].getsockname()[1], flush=True)  # noqa: T201
        tame_collector()
        await serving


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    options = parser.parse_args()
    configure()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(options.url))


if __name__ == "__main__":
    main()
