"""
``rollcage doctor``, as it is typed and shown.
"""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from rollcage.cli.doctor.cluster import look_at_cluster
from rollcage.cli.doctor.findings import Finding, Level, any_broken
from rollcage.cli.doctor.laptop import look_at_laptop
from rollcage.cli.doctor.service import look_at_service
from rollcage.cli.exits import Exit
from rollcage.cli.options import AsJson, Token, Url
from rollcage.cli.showing import clean, say_json

_SIGNS = {Level.OK: ("✓", "green"), Level.WARNING: ("!", "yellow"), Level.BROKEN: ("✗", "red")}


def doctor(
    *,
    cluster: Annotated[bool, typer.Option("--cluster", help="Look at a cluster, by its kubeconfig.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(envvar="KUBECONFIG", help="Which cluster; ~/.kube/config unless given.")
    ] = None,
    try_policies: Annotated[
        bool, typer.Option(help="Try whether the cluster enforces NetworkPolicies, with pods of its own.")
    ] = True,
    port: Annotated[int, typer.Option(help="The port that a service on this machine would take.")] = 8080,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """
    Look for the usual mistakes, and say what to do.

    Of this machine, of a service at --url, of a --cluster. Exits with 1 if something is broken.
    """
    sections: dict[str, list[Finding]] = {}
    if cluster:
        config = kubeconfig or Path.home() / ".kube" / "config"
        sections[f"cluster of {config}"] = asyncio.run(look_at_cluster(config, enforcement=try_policies))
    if address := url or os.environ.get("ROLLCAGE_URL", ""):
        sections[f"service at {address}"] = look_at_service(address, token)
    if not sections:
        sections["this machine"] = asyncio.run(look_at_laptop(port))
    if as_json:
        say_json([{"part": part, **_plain(one)} for part, found in sections.items() for one in found])
    else:
        for part, found in sections.items():
            _say(part, found)
    if any(map(any_broken, sections.values())):
        raise typer.Exit(Exit.NO)


def _say(part: str, found: list[Finding]) -> None:
    typer.secho(clean(part), bold=True)
    width = max(len(one.check) for one in found)
    for one in found:
        sign, colour = _SIGNS[one.level]
        typer.echo(f"  {typer.style(sign, fg=colour)} {one.check:<{width}}  {clean(one.said)}")
        if one.remedy:
            typer.echo(f"    {'':<{width}}  → {one.remedy}")


def _plain(one: Finding) -> dict[str, str]:
    return {"check": one.check, "level": one.level, "said": one.said, "remedy": one.remedy}
