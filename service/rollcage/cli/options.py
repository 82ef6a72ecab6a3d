"""
Options that many commands have: which service, as whom, and for whom the output is.
"""

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from rollcage.client import Client, Patience

# A person waits at the terminal, and may ask again.
HASTY: Final = Patience(attempts=3)

Url = Annotated[str, typer.Option("--url", envvar="ROLLCAGE_URL", help="The service's address, http://… or https://….")]
Token = Annotated[
    str,
    typer.Option(
        "--token", envvar="ROLLCAGE_TOKEN", show_envvar=True, help="Whose rollouts; on a command line others see it."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON for programs instead of tables for people.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="How many at most.")]
RunName = Annotated[str, typer.Argument(metavar="RUN", help="The training run's name.")]
RolloutName = Annotated[str, typer.Argument(metavar="ROLLOUT", help="The rollout's id (Agent RFT: its trace_id).")]


def can_be_written(path: Path | None) -> Path | None:
    """Refuse a file that could not be written in the end, before anything is done for it."""
    if path and not os.access(path if path.exists() else path.parent, os.W_OK):
        raise typer.BadParameter(f"{path} cannot be written")
    return path


def service(url: str, token: str) -> Client:
    """Return the service that the options name; what they leave out comes from the environment."""
    return Client(url or None, token or None, patience=HASTY)
