"""
``rollcage burst``: many rollouts at once against any gateway, and a page about how that went.
"""

import asyncio
import json
import secrets
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from rollcage.cli.bursts.driving import Target, drive
from rollcage.cli.bursts.scripts import uniform
from rollcage.cli.bursts.summary import summary
from rollcage.cli.bursts.view import shown
from rollcage.cli.exits import Exit
from rollcage.cli.options import AsJson, Token, Url, can_be_written, service
from rollcage.reports.burst import burst_page


def _arguments(text: str) -> str:
    try:
        if isinstance(json.loads(text), dict):
            return text
    except ValueError:
        pass
    raise typer.BadParameter("it has to be a JSON object")


def burst(
    *,
    environment: Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="Whose sandboxes the rollouts get.")],
    rollouts: Annotated[int, typer.Option("--rollouts", "-n", min=1, max=5000, help="How many, all at once.")] = 40,
    calls: Annotated[int, typer.Option(min=1, max=1000, help="Calls that each makes, one after the other.")] = 3,
    tool: Annotated[str, typer.Option(help="The tool that is called.")] = "shell",
    arguments: Annotated[
        str, typer.Option(callback=_arguments, help="Its arguments, as JSON.")
    ] = '{"command": "echo hello"}',
    run: Annotated[str, typer.Option(help="The run's name; a new one unless given.")] = "",
    report: Annotated[
        Path, typer.Option(dir_okay=False, callback=can_be_written, help="Where to write the page.")
    ] = Path("burst.html"),
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """
    Drive many rollouts at once against a gateway.

    Shows the pool meanwhile, and writes a page with latencies, verdicts and the pool's level.
    """
    with service(url, token) as client:
        # Asked first, so that a wrong address, token or name is one clear error and not one for each rollout.
        client.environment(environment)
        target = Target(client.url, token, environment, run or f"burst-{secrets.token_hex(4)}")
    console = Console(stderr=as_json)
    scripts = uniform(rollouts, tool=tool, arguments=json.loads(arguments), calls=calls)
    with shown(console) as view:
        driven = asyncio.run(drive(target, scripts, view, title=f"{rollouts} rollouts of {environment}"))
    report.write_text(burst_page(driven.burst), encoding="utf-8")
    console.print(summary(driven), highlight=False)
    console.print(f"\nThe whole burst as a page: {report}", highlight=False, soft_wrap=True)
    if as_json:
        typer.echo(json.dumps({"run": target.run, "figures": driven.figures.as_json(), "report": str(report)}))
    if not driven.figures.all_is_well:
        raise typer.Exit(Exit.NO)
