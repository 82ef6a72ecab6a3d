"""
Find a prometheus and its promtool: where the PATH has both, else built from their Go module.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from lab import parts

PROGRAMS = ("prometheus", "promtool")


def programs() -> Path:
    """Return where both are, building them if need be."""
    found = {Path(path).parent for name in PROGRAMS if (path := shutil.which(name))}
    if len(found) == 1 and all((directory / name).exists() for directory in found for name in PROGRAMS):
        return found.pop()
    return parts.build(parts.PROMETHEUS)
