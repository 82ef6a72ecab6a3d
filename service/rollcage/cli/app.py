"""
The ``rollcage`` command, put together.

Each command stands in a file of its own; here they get their names, and what
goes wrong in any of them becomes one line and an exit code.
"""

from importlib.metadata import version
from typing import Annotated

import typer

from rollcage.cli.burst import burst
from rollcage.cli.dev import dev
from rollcage.cli.doctor.command import doctor
from rollcage.cli.exits import complain
from rollcage.cli.grading import grade
from rollcage.cli.reading import environments, rollouts, tools, trajectory, verdict
from rollcage.cli.runs import reserve, run
from rollcage.cli.tokens import token
from rollcage.client.errors import ClientError
from rollcage.core.errors import RollcageError

app = typer.Typer(
    name="rollcage",
    no_args_is_help=True,
    # Plain text: boxes are drawn for a width that a pipe or a narrow window does not have.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        typer.echo(f"rollcage {version('rollcage')}")
        raise typer.Exit


@app.callback()
def _common(
    *,
    _version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_say_version, help="Say which release this is.")
    ] = False,
) -> None:
    """Isolated sandboxes for rollouts of tool-using agents."""


app.command()(dev)
app.command()(burst)
for command in (environments, rollouts, trajectory, verdict, reserve, grade, tools, token, doctor):
    app.command()(command)
app.add_typer(run, name="run")


def main() -> None:
    """Run the command."""
    try:
        # Not as Python was started: the name is also what completion goes by.
        app(prog_name="rollcage")
    except (ClientError, RollcageError, ModuleNotFoundError, OSError) as error:
        raise SystemExit(complain(error)) from None
