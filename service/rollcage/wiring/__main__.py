"""
Run one part of a deployment: ``python -m rollcage.wiring controller`` or ``gateway``.
"""

from __future__ import annotations

import os
import sys

from pydantic import ValidationError

from rollcage.telemetry import logs
from rollcage.wiring.cluster import control
from rollcage.wiring.gateway import answer
from rollcage.wiring.running import run
from rollcage.wiring.settings import PREFIX, ControllerSettings, GatewaySettings, S, settings_from


def main(arguments: list[str]) -> None:
    """Run the part that is named."""
    logs.configure()
    match arguments:
        case ["controller"]:
            run(control(_told(ControllerSettings)))
        case ["gateway"]:
            run(answer(_told(GatewaySettings)))
        case _:
            sys.exit("usage: python -m rollcage.wiring controller|gateway")


def _told(kind: type[S]) -> S:
    try:
        return settings_from(kind, os.environ)
    except ValidationError as error:
        wrong = (f"{PREFIX}{str(one['loc'][0]).upper()}: {one['msg']}" for one in error.errors())
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
