"""
``rollcage token``: make a token, and what the tenants' file gets of it.
"""

import hashlib
import secrets
import sys
from typing import Annotated, Final

import typer

from rollcage.cli.options import AsJson
from rollcage.cli.showing import say_json

# 256 bits; the service refuses tokens of fewer than 32 characters.
_BYTES: Final = 32
_SHORTEST: Final = 32


def token(
    *,
    existing: Annotated[bool, typer.Option("--stdin", help="Hash the token on standard input instead.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    Make a token, and its hash for the tenants' file.

    It is shown once and kept nowhere.
    """
    made = sys.stdin.readline().strip() if existing else secrets.token_hex(_BYTES)
    if len(made) < _SHORTEST:
        raise typer.BadParameter(f"a token has at least {_SHORTEST} characters", param_hint="--stdin")
    digest = f"sha256:{hashlib.sha256(made.encode()).hexdigest()}"
    if as_json:
        say_json({"token": made, "hash": digest})
        return
    typer.echo(f"token  {made}\nhash   {digest}" if not existing else digest)
