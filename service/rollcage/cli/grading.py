"""
``rollcage grade``: ask for a rollout's score, as a trainer does.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rollcage.cli.options import AsJson, RolloutName, Token, Url, service
from rollcage.cli.showing import figure, say_fields, say_json


def grade(
    rollout: RolloutName,
    *,
    item: Annotated[Path | None, typer.Option(help="The dataset item, a JSON file.")] = None,
    text: Annotated[str, typer.Option(help="The model's final answer.")] = "",
    environment: Annotated[str | None, typer.Option(help="Only for a rollout that made no call.")] = None,
    run: Annotated[str | None, typer.Option(help="Only for a rollout that made no call.")] = None,
    regrade: Annotated[bool, typer.Option("--regrade", help="Ask the grader even if there is a score.")] = False,
    url: Url = "",
    token: Token = "",
    as_json: AsJson = False,
) -> None:
    """Ask the environment's grader for a rollout's score."""
    with service(url, token) as client:
        found = client.grade(rollout, item=_item(item), text=text, environment=environment, run=run, regrade=regrade)
    if as_json:
        say_json(found)
        return
    say_fields(
        [
            ("score", found.score),
            *found.parts.items(),
            ("notes", "; ".join(found.notes)),
            ("graded", found.graded_at),
            ("took", f"{figure(found.seconds)} s{' (the score that stood already)' if found.replayed else ''}"),
        ]
    )


def _item(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise typer.BadParameter(f"{path}: {error.strerror}", param_hint="--item") from error
    except ValueError as error:
        raise typer.BadParameter(f"{path} holds no JSON: {error}", param_hint="--item") from error
    if not isinstance(told, dict):
        raise typer.BadParameter(f"{path} holds no JSON object", param_hint="--item")
    return told
