"""
Take the sandbox's user id and limits, and become bubblewrap, which does the rest.
"""

import os

from rollcage.sandboxes.local.launch.spec import Spec, change_user, limit


def launch(spec: Spec) -> None:
    """Become the program that builds the cage."""
    limit(spec)
    change_user(spec)
    for fd in (spec["status"], spec["hold"], *spec["keep"]):
        os.set_inheritable(fd, True)  # noqa: FBT003 - takes no name
    os.execv(spec["program"][0], spec["program"])  # noqa: S606 - that is what it is for
