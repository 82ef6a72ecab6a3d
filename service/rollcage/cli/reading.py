"""
Commands that read: environments, their tools, rollouts, trajectories, verdicts.
"""

import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

import typer

from rollcage.cli.options import AsJson, Limit, RolloutName, Token, Url, service
from rollcage.cli.showing import clean, excerpt, say_fields, say_json, say_table
from rollcage.client.models import RolloutState, Step, Verdict
from rollcage.client.requests import Form, Label

_SHORT: Final = 60
# How a rollout without a verdict stands, in the console's words.
_STATES: Final = {"bound": "running", "waiting": "queued", "asked": "queued"}
_TALL: Final = 12
_WIDE: Final = 500


def environments(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only this one.")] = None,
    *,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show the environments, and how full their pools are."""
    with service(url, token) as client:
        found = [client.environment(name)] if name else list(client.environments())
        pools = {pool.environment: pool for pool in client.pools().pools}
    if as_json:
        say_json([{**environment.model_dump(), "pool": pools.get(environment.name)} for environment in found])
        return
    rows = []
    for environment in found:
        pool = pools.get(environment.name)
        levels = (pool.ready + pool.set_aside, pool.wanted, pool.claimed, pool.waiting) if pool else (None,) * 4
        rows.append((environment.name, *levels, ", ".join(environment.tools), excerpt(environment.description, _SHORT)))
    columns = ("environment", "ready #", "wanted #", "claimed #", "waiting #", "tools ~", "about ~")
    say_table(columns, rows, nothing="no environments: the service has none yet")


def tools(
    environment: Annotated[str, typer.Argument(metavar="ENVIRONMENT", help="Whose tools.")],
    *,
    form: Annotated[Form, typer.Option(help="For a dataset, the Responses API, or an Agent RFT job.")] = (
        "chat_completions"
    ),
    run: Annotated[str, typer.Option(help="The run that a job's addresses name.")] = "default",
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """
    Show an environment's tools.

    With --json they are as a dataset or an Agent RFT job wants them.
    """
    with service(url, token) as client:
        found = client.tools(environment, form=form, run=run)
    if as_json:
        say_json(found)
        return
    rows = [_tool(tool) for tool in found]
    say_table(("tool", "arguments ~" if form != "job" else "address", "about ~"), rows, nothing="no tools")


def _tool(tool: dict[str, Any]) -> tuple[str, str, str]:
    told = tool.get("function", tool)
    if "server_url" in told:
        return told["name"], told["server_url"], ""
    parameters = told.get("parameters", {})
    required = set(parameters.get("required", ()))
    names = (name if name in required else f"[{name}]" for name in parameters.get("properties", {}))
    return told["name"], " ".join(names), excerpt(told.get("description", ""), _SHORT)


def rollouts(
    *,
    run: Annotated[str | None, typer.Option(help="Only of this run.")] = None,
    label: Annotated[Label, typer.Option(help="Only those.")] = "all",
    limit: Limit = 50,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """List rollouts, newest first."""
    with service(url, token) as client:
        found = list(islice(client.rollouts(run=run, label=label, page=min(limit, 500)), limit))
    if as_json:
        say_json(found)
        return
    columns = ("rollout", "run", "environment", "calls #", "verdict", "cause", "score #", "begun")
    say_table(columns, map(_row, found), nothing="no rollouts")


def _row(found: RolloutState) -> tuple[Any, ...]:
    verdict = found.verdict
    judged = (verdict.word, verdict.cause) if verdict else (_STATES.get(found.state, found.state), None)
    return (found.rollout, found.run, found.environment, found.calls, *judged, found.score, found.begun_at)


def trajectory(
    rollout: RolloutName,
    *,
    full: Annotated[bool, typer.Option("--full", help="Whole outputs, not their beginnings.")] = False,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show a rollout's calls, and what the model saw of them."""
    with service(url, token) as client:
        steps = list(client.trajectory(rollout))
    if as_json:
        say_json(steps)
        return
    for step in steps:
        _say_step(step, full=full)
    if not steps:
        typer.echo("it made no calls")


def _say_step(step: Step, *, full: bool) -> None:
    took = f"{(step.finished_at - step.begun_at).total_seconds() * 1000:.0f} ms" if step.finished_at else "no end"
    arguments = json.dumps(step.arguments, ensure_ascii=False)
    cut = "  cut" if (step.facts or {}).get("truncated") else ""
    typer.secho(f"{step.number}  {clean(step.tool)}  {step.outcome or 'no result'}  {took}{cut}", bold=True)
    typer.echo(f"   {clean(arguments if full else excerpt(arguments, 200))}")
    lines = clean(step.output or "").splitlines()
    for line in lines if full else lines[:_TALL]:
        typer.echo(f"   │ {line if full else _shortened(line)}")
    if not full and len(lines) > _TALL:
        typer.echo(f"   │ … {_more(len(lines) - _TALL, 'line')}, see --full")


def _shortened(line: str) -> str:
    left_out = len(line) - _WIDE
    return line if left_out <= 0 else f"{line[:_WIDE]}… {_more(left_out, 'character')}, see --full"


def _more(number: int, what: str) -> str:
    return f"{number} more {what}{'' if number == 1 else 's'}"


def verdict(rollout: RolloutName, *, url: Url = "", token: Token = "", as_json: AsJson = False) -> None:
    """Show a rollout's verdict, its cause and the evidence."""
    with service(url, token) as client:
        found = client.verdict(rollout)
    if as_json:
        say_json(found)
        return
    given = found.verdict or Verdict(word="none yet", cause="it runs", by="", at=None)
    sandbox = found.sandbox
    say_fields(
        [
            ("rollout", found.rollout),
            ("verdict", given.word),
            ("cause", given.cause),
            ("by", given.by),
            ("at", given.at),
            ("sandbox", sandbox.name if sandbox else ""),
            ("node", sandbox.node if sandbox else ""),
            ("image", sandbox.image if sandbox else ""),
        ]
    )
    for piece in filter(None, found.evidence):
        typer.echo("\nevidence")
        say_fields((f"  {name}", value) for name, value in flat(piece))


def flat(piece: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield what a piece of evidence holds, each under its path."""
    if isinstance(piece, dict):
        for key, value in piece.items():
            yield from flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False)
