"""
Show what it is for: a burst of rollouts, some spoiled by their model, some robbed of their sandbox.

The first are answered and trained on, the second are masked with their cause;
everything that is said at the end was counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console

from rollcage.cli.bursts.driving import Target, drive
from rollcage.cli.bursts.scripts import Means, Strike, Timing, composed
from rollcage.cli.bursts.summary import summary
from rollcage.cli.bursts.view import shown
from rollcage.core.environment_file import load_environments
from rollcage.reports.burst import burst_page
from rollcage.sandboxes.local.tiers import NoIsolation, Tier
from rollcage.telemetry import logs
from rollcage.wiring.announcing import announcement
from rollcage.wiring.laptop import LaptopSettings, laptop
from rollcage.wiring.running import end_by_signals, run, told_to_stop
from rollcage.wiring.toolserver import cache_directory, find_toolserver

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollcage.cli.bursts.driving import Driven
    from rollcage.cli.bursts.trainer import Striking
    from rollcage.wiring.laptop import Laptop

ENVIRONMENT: Final = """
apiVersion: rollcage.dev/v1alpha1
kind: Environment
metadata: {name: demo}
spec:
  description: What the demonstration runs in.
  image: none
  resources: {limits: {memory: 256Mi, ephemeral-storage: 64Mi}}
  workspace: {size: 32Mi}
  grading: {grader: {kind: text, expected: item.answer}}
  pool: {warm: 8, maxPods: 12}
"""
MORAL: Final = (
    "What a model broke itself was answered, scored and may be trained on; "
    "what was taken away from it was masked with its cause, and no grader saw it."
)
INTERRUPTED: Final = 130
# Where there is no terminal that says.
WIDTH: Final = 120
WARM_SECONDS: Final = 15.0
LOOK_AGAIN: Final = 0.05
OWN_ROOT: Final = (Tier.BUBBLEWRAP, Tier.NAMESPACES)
NOT_ISOLATED: Final = (
    "NOTHING IS ISOLATED HERE: this machine forbids namespaces and Landlock, so sandboxes are plain processes. "
    "The demonstration's own commands are harmless and it runs all the same; the service itself would refuse to start."
)
NO_KILL: Final = (
    "Without a process namespace a kill from outside cannot be told from the model's own, "
    "so sandboxes are deleted instead."
)


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks for."""

    rollouts: int
    stay: bool
    json: bool
    report: Path


async def demonstrate(wishes: Wishes, console: Console) -> int:
    """Run everything; 0 if the service kept its promises."""
    end_by_signals()
    console.print("Building the toolserver, if need be …")
    settings = LaptopSettings(
        environments={one.name: one for one in load_environments(ENVIRONMENT)},
        toolserver=await asyncio.to_thread(find_toolserver),
        token=secrets.token_hex(32),
        port=None if wishes.stay else 0,
    )
    try:
        return await _shown(settings, wishes, console)
    except NoIsolation as refusal:
        console.print(f"[bold red]{NOT_ISOLATED}[/]\n{refusal}", highlight=False)
        return await _shown(replace(settings, unsafe_no_isolation=True), wishes, console)


async def _shown(settings: LaptopSettings, wishes: Wishes, console: Console) -> int:
    async with laptop(settings) as running:
        driven = await _driven(running, wishes, console)
        wishes.report.write_text(burst_page(driven.burst), encoding="utf-8")
        console.print(summary(driven), highlight=False)
        console.print(f"\n{MORAL}", highlight=False)
        console.print(f"\nThe whole burst as a page: {wishes.report}", highlight=False, soft_wrap=True)
        if wishes.stay:
            console.print(f"\n{announcement(running)}", highlight=False, soft_wrap=True)
            await told_to_stop()
    if wishes.json:
        tier = str(running.source.detection.tier)
        print(json.dumps({"figures": {**driven.figures.as_json(), "isolation": tier}}))
    return 0 if driven.figures.all_is_well else 1


async def _driven(running: Laptop, wishes: Wishes, console: Console) -> Driven:
    tier = running.source.detection.tier
    own_root = tier in OWN_ROOT
    strikes = _planned(own_root=own_root)
    notes = [f"Sandboxes held in by: {tier}."]
    notes += [NOT_ISOLATED] if tier is Tier.NONE else []
    notes += [] if own_root else [NO_KILL]
    pool = running.environments["demo"].spec.pool
    console.print(
        f"The service is up at {running.url}: {pool.warm} sandboxes kept warm, {pool.max_pods} at most. "
        f"{wishes.rollouts} rollouts arrive at once; {len(strikes)} of them will lose their sandbox.",
        *notes,
        sep="\n",
        highlight=False,
    )
    await _warm(running)
    with shown(console) as view:
        return await drive(
            Target(running.url, running.token, "demo", "demo"),
            composed(wishes.rollouts, own_root=own_root, strikes=strikes),
            view,
            title="The demonstration's burst",
            notes=tuple(notes),
            strikes=_strikes(running),
            direct=True,
        )


async def _warm(running: Laptop) -> None:
    """Wait for the pool to fill, as it has between two steps of a training; not for ever on a machine that is busy."""
    want = running.environments["demo"].spec.pool.warm
    with suppress(TimeoutError):
        async with asyncio.timeout(WARM_SECONDS):
            while (await running.store.pools.counts("demo")).ready < want:  # noqa: ASYNC110 - as a trainer
                await asyncio.sleep(LOOK_AGAIN)


def _planned(*, own_root: bool) -> tuple[Strike, ...]:
    killed = Means.KILL if own_root else Means.DELETE
    both = (Timing.BETWEEN, Timing.DURING)
    return tuple(Strike(means, timing) for means in (killed, killed, Means.DELETE) for timing in both)


def _strikes(running: Laptop) -> Mapping[Means, Striking]:
    async def kill(sandbox: Mapping[str, str]) -> None:
        process = running.source.process(sandbox["name"])
        if process is not None:
            os.kill(process, signal.SIGKILL)

    async def delete(sandbox: Mapping[str, str]) -> None:
        await running.source.delete(sandbox["name"], uid=sandbox["uid"])

    return {Means.KILL: kill, Means.DELETE: delete}


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--rollouts", type=int, default=40, help="how many (default: 40)")
    parser.add_argument("--stay", action="store_true", help="keep the service up afterwards")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON on the last line")
    parser.add_argument("--report", type=Path, default=cache_directory() / "demo" / "report.html", help="where")
    options = parser.parse_args()
    if options.rollouts < 1:
        parser.error("--rollouts: at least one")
    wishes = Wishes(options.rollouts, options.stay, options.json, options.report)
    # With --json the figures are all that is printed on standard output.
    terminal = (sys.stderr if options.json else sys.stdout).isatty()
    console = Console(stderr=options.json, width=None if terminal else WIDTH)
    log = options.report.with_suffix(".log")
    try:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as stream:
            logs.configure(stream=stream)
            code = run(demonstrate(wishes, console))
    except OSError as error:
        sys.exit(f"cannot write to {options.report.parent}: {error}; give another place with --report FILE")
    if code:
        console.print(f"[bold red]This should not have happened.[/] What the service says: {log}", highlight=False)
    sys.exit(INTERRUPTED if code is None else code)


if __name__ == "__main__":
    main()
