"""
Print the path of a helm: the one on the PATH, else one built from its Go module.
"""

from __future__ import annotations

import sys

from lab.manifests import helm
from lab.talk import LabError, complain


def main() -> int:
    """Find or build helm."""
    try:
        print(helm())
    except LabError as error:
        return complain(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
