"""
Whether this machine can run the whole service by itself.
"""

import asyncio
import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from rollcage.cli.doctor.findings import Finding, broken, ok, warning
from rollcage.core.errors import RollcageError

_OLDEST: Final = (3, 11)
# One of each group of packages that a service needs.
_NEEDED: Final = ("fastapi", "redis", "uvicorn", "aiohttp", "cryptography")


async def look_at_laptop(port: int) -> list[Finding]:
    """Look at everything that ``rollcage dev`` needs."""
    found = [python(sys.version_info[:3]), packages([name for name in _NEEDED if find_spec(name) is None])]
    if any(one.remedy for one in found):
        # Nothing below can even be looked at without them.
        return found
    # Not at the top: the other commands work without the service's packages.
    from rollcage.wiring.toolserver import find_toolserver  # noqa: PLC0415

    found.append(_redis())
    try:
        program = await asyncio.to_thread(find_toolserver)
    except RollcageError as error:
        return [*found, broken("toolserver", str(error), "see docs/laptop.md"), _port(port)]
    found.append(ok("toolserver", str(program)))
    return [*found, *await _isolation(program), _port(port)]


def python(version: tuple[int, int, int]) -> Finding:
    """Decide about the interpreter."""
    spelled = ".".join(map(str, version))
    if version[:2] < _OLDEST:
        return broken("Python", f"{spelled} is too old", "use Python 3.11 or later")
    return ok("Python", spelled)


def packages(missing: list[str]) -> Finding:
    """Decide about the service's packages."""
    if missing:
        return broken("packages", f"not installed: {', '.join(missing)}", "pip install 'rollcage[cli,laptop,service]'")
    return ok("packages", "the service's are installed")


def port_taken(port: int, *, taken: bool) -> Finding:
    """Decide about the port that the service listens on unless told otherwise."""
    if taken:
        said = f"{port} is taken: by a service that runs already, or by another program"
        return warning("port", said, "stop it, or let `rollcage dev --port N` listen elsewhere")
    return ok("port", f"{port} is free")


def _redis() -> Finding:
    from rollcage.store.server import find_executable  # noqa: PLC0415 - as above

    try:
        return ok("Redis", str(find_executable()))
    except RollcageError as error:
        return broken("Redis", str(error), "install redis-server or valkey-server, or: pip install 'rollcage[laptop]'")


async def _isolation(program: Path) -> list[Finding]:
    from rollcage.sandboxes.local.detect import detect  # noqa: PLC0415 - as above
    from rollcage.sandboxes.local.place import place  # noqa: PLC0415
    from rollcage.sandboxes.local.tiers import REMEDIES, Tier  # noqa: PLC0415

    try:
        with place(program) as where:
            detection = await detect(where)
    except RollcageError as error:
        return [broken("isolation", str(error), "set TMPDIR to a short path that everybody may pass through")]

    def better() -> Iterator[Finding]:
        for tier, reason in detection.refused.items():
            yield warning(f"isolation: {tier}", reason, REMEDIES[tier])

    if detection.tier is Tier.NONE:
        remedy = "mend one of the ways above; only where nothing can be lost: `rollcage dev --unsafe-no-isolation`"
        return [*better(), broken("isolation", "nothing here can hold a sandbox in", remedy)]
    return [*better(), ok("isolation", f"sandboxes are held in by {detection.tier}")]


def _port(port: int) -> Finding:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return port_taken(port, taken=True)
    return port_taken(port, taken=False)
