"""
``rollcage dev``: the whole service on this machine, until it is told to stop.
"""

import asyncio
import os
import secrets
from pathlib import Path
from typing import Annotated, Final

import typer

# 256 bits, like every token.
TOKEN_BYTES: Final = 32


def dev(
    *,
    environment: Annotated[
        list[Path] | None, typer.Option(help="A file of environments; may be given several times.")
    ] = None,
    example: Annotated[str | None, typer.Option(help="One of the repository's examples.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Where to listen; 8080 or a free port unless given.")
    ] = None,
    unsafe_no_isolation: Annotated[
        bool, typer.Option("--unsafe-no-isolation", help="Start even where nothing can hold a sandbox in.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log everything, not only warnings.")] = False,
) -> None:
    """
    Run the whole service on this machine.

    Redis, controller and gateway in one process, with sandboxes as process trees, until Ctrl-C.
    """
    # The other commands work, and start fast, without what a service needs.
    from rollcage.gateway.tenants import SHORTEST_TOKEN  # noqa: PLC0415
    from rollcage.telemetry import logs  # noqa: PLC0415
    from rollcage.wiring.announcing import announcement  # noqa: PLC0415
    from rollcage.wiring.choosing import chosen  # noqa: PLC0415
    from rollcage.wiring.laptop import LaptopSettings, laptop  # noqa: PLC0415
    from rollcage.wiring.running import end_by_signals, run, told_to_stop  # noqa: PLC0415
    from rollcage.wiring.toolserver import find_toolserver  # noqa: PLC0415

    token = os.environ.get("ROLLCAGE_TOKEN") or secrets.token_hex(TOKEN_BYTES)
    if len(token) < SHORTEST_TOKEN:
        raise typer.BadParameter(
            f"ROLLCAGE_TOKEN has fewer than {SHORTEST_TOKEN} characters; unset it to get a new one"
        )
    logs.configure(logs.Format.CONSOLE, level="INFO" if verbose else "WARNING")

    async def work() -> None:
        end_by_signals()
        choice = chosen(environment or [], example)
        settings = LaptopSettings(
            environments=choice.environments,
            graders=choice.graders,
            toolserver=await asyncio.to_thread(find_toolserver),
            token=token,
            port=port,
            unsafe_no_isolation=unsafe_no_isolation,
        )
        async with laptop(settings) as running:
            typer.echo(announcement(running))
            await told_to_stop()

    run(work())
    typer.echo("stopped")
