"""
Commands about a training run: its health, its report, its reservations.
"""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from rollcage.cli.exits import Exit
from rollcage.cli.options import AsJson, Limit, RunName, Token, Url, can_be_written, service
from rollcage.cli.showing import say_fields, say_json, say_table
from rollcage.client import AsyncClient
from rollcage.reports.gathering import gathered
from rollcage.reports.run import run_page

run = typer.Typer(help="Look at training runs.", no_args_is_help=True)


@run.command("list")
def listed(*, limit: Limit = 20, url: Url = "", token: Token = "", as_json: AsJson = False) -> None:
    """List the latest runs."""
    with service(url, token) as client:
        found = client.runs(limit=min(limit, 1000))
    if as_json:
        say_json(found)
        return
    columns = ("run", "rollouts #", "active #", "calls #", "masked #", "graded #", "mean score #", "last heard of")
    rows = (
        (
            one.run,
            one.rollouts,
            one.active,
            one.calls,
            one.verdicts.get("masked", 0),
            one.graded,
            one.mean_score,
            one.last_at,
        )
        for one in found
    )
    say_table(columns, rows, nothing="no runs")


@run.command()
def health(name: RunName, *, url: Url = "", token: Token = "", as_json: AsJson = False) -> None:
    """Say whether a step is safe to train on; exits with 1 unless it is."""
    with service(url, token) as client:
        found = client.health(name)
    if as_json:
        say_json(found)
    else:
        say_fields(
            [
                ("advice", found.advice),
                ("because", ", ".join(found.reasons)),
                ("rollouts", f"{found.rollouts} ({found.active} active, {found.ended} ended)"),
                ("calls", found.calls),
                ("masked", f"{found.masked} ({found.masked_share:.1%} of those with a verdict)"),
                ("ended by", ", ".join(f"{cause} {count}" for cause, count in found.causes.items())),
            ]
        )
    if found.advice != "proceed":
        raise typer.Exit(Exit.NO)


@run.command()
def report(
    name: RunName,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", dir_okay=False, callback=can_be_written, help="The file; RUN.html unless given."
        ),
    ] = None,
    trajectories: Annotated[
        int, typer.Option(min=0, help="From how many rollouts to read every call, for the plots by tool.")
    ] = 200,
    step: Annotated[int, typer.Option(min=0, help="Rollouts of one training step; plots are then over steps.")] = 0,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Write an HTML page that shows whether a run learns."""

    async def gather() -> str:
        async with AsyncClient(url or None, token or None) as client:
            found = await gathered(client, name, trajectories=trajectories, now=datetime.now(UTC), step=step)
        return run_page(found)

    page = asyncio.run(gather())
    target = output or Path(f"{name}.html")
    target.write_text(page, encoding="utf-8")
    if as_json:
        say_json({"report": str(target.resolve())})
    else:
        typer.echo(f"wrote {target}")


def reserve(
    name: RunName,
    environment: Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="Whose sandboxes.")],
    count: Annotated[
        int, typer.Argument(metavar="COUNT", min=0, max=10_000, help="How many; 0 gives back what is left.")
    ],
    *,
    reservation: Annotated[
        str | None, typer.Option("--id", help="The same id again changes nothing; one is made up.")
    ] = None,
    ttl_seconds: Annotated[int, typer.Option("--ttl", min=1, max=86_400, help="For how many seconds.")] = 600,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Set sandboxes aside for the step to come."""
    with service(url, token) as client:
        found = client.reserve(name, environment, count, reservation=reservation, ttl_seconds=ttl_seconds)
    if as_json:
        say_json(found)
        return
    say_fields(
        [
            ("reserved", found.count),
            ("set aside", found.set_aside),
            ("left", found.left),
            ("until", found.expires_at),
        ]
    )
