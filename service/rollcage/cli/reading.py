"""
Commands that read: environments, their tools, rollouts, trajectories, verdicts.
"""

import json
from itertools import islice
from typing import Annotated, Any, Final

import typer

from rollcage.cli.options import AsJson, Limit, RolloutName, Token, Url, service
from rollcage.cli.showing import clean, excerpt, say_fields, say_json, say_table
from rollcage.client.models import RolloutState, Step, Verdict
from rollcage.client.requests import Form, Label

_SHORT: Final = 60
_TALL: Final = 12


def environments(
    name: Annotated[str | None, typer.Argument(help="Only this one.")] = None,
    *,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show the environments, and how full their pools are."""
    with service(url, token) as client:
        found = [client.environment(name)] if name else list(client.environments())
        if as_json:
            say_json(found)
            return
        pools = {pool.environment: pool for pool in client.pools().pools}
    rows = []
    for environment in found:
        pool = pools.get(environment.name)
        levels = (pool.ready + pool.set_aside, pool.wanted, pool.claimed, pool.waiting) if pool else (None,) * 4
        rows.append((environment.name, *levels, ", ".join(environment.tools), excerpt(environment.description, _SHORT)))
    columns = ("environment", "ready #", "wanted #", "claimed #", "waiting #", "tools", "")
    say_table(columns, rows, nothing="no environments: the service has none yet")


def tools(
    environment: Annotated[str, typer.Argument(help="Whose tools.")],
    *,
    form: Annotated[Form, typer.Option(help="For a dataset, the Responses API, or an Agent RFT job.")] = (
        "chat_completions"
    ),
    run: Annotated[str, typer.Option(help="The run that a job's addresses name.")] = "default",
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show an environment's tools; with --json as a dataset or a job wants them."""
    with service(url, token) as client:
        found = client.tools(environment, form=form, run=run)
    if as_json:
        say_json(found)
        return
    rows = [_tool(tool) for tool in found]
    say_table(("tool", "arguments" if form != "job" else "address", ""), rows, nothing="no tools")


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
    columns = ("rollout", "run", "environment", "state", "calls #", "verdict", "cause", "score #", "begun")
    say_table(columns, map(_row, found), nothing="no rollouts")


def _row(found: RolloutState) -> tuple[Any, ...]:
    verdict = found.verdict
    judged = (verdict.word, verdict.cause) if verdict else (None, None)
    return (
        found.rollout,
        found.run,
        found.environment,
        found.state,
        found.calls,
        *judged,
        found.score,
        found.begun_at,
    )


def trajectory(
    rollout: RolloutName,
    *,
    full: Annotated[bool, typer.Option("--full", help="Whole outputs, not their beginnings.")] = False,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Show a rollout's calls as the model made them and saw their results."""
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
    typer.secho(f"{step.number}  {clean(step.tool)}  {step.outcome or 'no result'}  {took}", bold=True)
    typer.echo(f"   {clean(arguments if full else excerpt(arguments, 200))}")
    lines = clean(step.output or "").splitlines()
    for line in lines if full else lines[:_TALL]:
        typer.echo(f"   │ {line}")
    if not full and len(lines) > _TALL:
        typer.echo(f"   │ … {len(lines) - _TALL} more lines, see --full")


def verdict(rollout: RolloutName, *, url: Url = "", token: Token = "", as_json: AsJson = False) -> None:
    """Show what a trainer may do with a rollout, why, and the evidence."""
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
        told = piece if isinstance(piece, dict) else {"": piece}
        say_fields((f"  {name}", _spelled(value)) for name, value in told.items())


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
