"""
Where the ``rollcage`` command starts: the one module that needs nothing of its extra.

A bare ``pip install rollcage`` brings the client, and the command without what
it shows things with. Then it says how to get that.
"""

import sys


def main() -> None:
    """Run the command."""
    try:
        from rollcage.cli import app  # noqa: PLC0415 - it may not be importable, and that is to be said
    except ModuleNotFoundError as error:
        sys.exit(f"rollcage: the command needs {error.name}, which is not installed (pip install 'rollcage[cli]')")
    app.main()
