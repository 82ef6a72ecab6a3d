"""
Print the directory of a prometheus and its promtool: where the PATH has both, else built from their Go module.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from lab import parts
from lab.talk import LabError, complain

PROGRAMS = ("prometheus", "promtool")


def programs() -> Path:
    """Return where both are, building them if need be."""
    found = {Path(path).parent for name in PROGRAMS if (path := shutil.which(name))}
    if len(found) == 1 and all((directory / name).exists() for directory in found for name in PROGRAMS):
        return found.pop()
    return parts.build(parts.PROMETHEUS)


def main() -> int:
    """Find or build them."""
    try:
        print(programs())
    except LabError as error:
        return complain(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
