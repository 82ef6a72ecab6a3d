"""
Run one part of a deployment: ``python -m rollcage.wiring controller`` or ``gateway``.
"""

from __future__ import annotations

import os
import signal
import sys

# The first process of a container ignores what it has no handler for: a SIGTERM that came during the seconds which the
# imports below take would be lost, and its pod stay for the whole time that it has to drain.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))

from pydantic import ValidationError  # noqa: E402

from rollcage.telemetry import logs  # noqa: E402
from rollcage.wiring.cluster import control  # noqa: E402
from rollcage.wiring.gateway import answer  # noqa: E402
from rollcage.wiring.running import run  # noqa: E402
from rollcage.wiring.settings import (  # noqa: E402
    PREFIX,
    ControllerSettings,
    GatewaySettings,
    S,
    settings_from,
)


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
