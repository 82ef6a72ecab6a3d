"""
The definitions of the built-in tools, as the real toolserver tells them.

The gateway must know them without a sandbox, so it keeps a copy. Run as a
program, with ``PYTHONPATH=scripts:tests python -m support.builtin_tools``,
this writes the copy anew; a test compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rollcage.gateway
from lab.images import build_toolserver
from lab.places import scratch
from support.local_toolserver import Launcher
from support.waiting import until

if TYPE_CHECKING:
    from support.local_toolserver import LocalToolserver

COPY = Path(rollcage.gateway.__file__).parent / "builtin_tools.json"


def told(sandbox: LocalToolserver) -> list[dict[str, Any]]:
    """Return what a toolserver with nothing configured says about its tools."""
    tools: list[dict[str, Any]] = json.loads(sandbox.request("GET", "/v1/tools").body)["tools"]
    return tools


def main() -> None:
    """Write the gateway's copy."""
    with scratch() as tmp:
        build_toolserver(tmp / "toolserver")
        with Launcher(tmp / "toolserver", tmp, tmp / "log").start() as sandbox:
            until(sandbox.ready)
            COPY.write_text(json.dumps(told(sandbox), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
