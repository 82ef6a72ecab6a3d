"""
Build what the tests use beside the service, before anybody runs them: no test's time limit should pay for it.
"""

from __future__ import annotations

import sys

from lab import parts, prometheus
from lab.manifests import helm
from lab.talk import LabError, complain


def main() -> int:
    """Find or build all of it."""
    try:
        helm()
        prometheus.programs()
        parts.build(parts.POLICIES)
    except LabError as error:
        return complain(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
