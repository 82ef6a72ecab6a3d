"""
Start one sandbox: ``<cage|keeper|dropper> <encoded spec>``.
"""

import os
import sys
from importlib import import_module

from rollcage.sandboxes.local.launch import kernel
from rollcage.sandboxes.local.launch.spec import decoded


def main() -> int:
    """Do it; what went wrong goes to standard error, where the service looks."""
    which, word = sys.argv[1:]
    try:
        # Each loads only what it needs.
        import_module(f"rollcage.sandboxes.local.launch.{which}").launch(decoded(word))
    except (kernel.Refused, OSError) as error:
        os.write(2, f"{which}: {error}\n".encode())
        return 1
    return 0
