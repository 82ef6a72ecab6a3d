"""
A sandbox in the words of the store, and the labels that it gets when it is claimed.
"""

from typing import Final

from rollcage.sandboxes.source import Sandbox
from rollcage.store import records

ROLLOUT_LABEL: Final = "rollcage.dev/rollout"
RUN_LABEL: Final = "rollcage.dev/run"


def card(sandbox: Sandbox) -> records.Sandbox:
    """Return what goes along with a binding."""
    if sandbox.address is None:
        raise ValueError(f"{sandbox.name} has no address yet")
    return records.Sandbox(
        name=sandbox.name,
        environment=sandbox.environment,
        address=sandbox.address,
        uid=sandbox.uid,
        node=sandbox.node or "",
        image=sandbox.image or "",
    )


def labels(rollout: records.Rollout) -> dict[str, str]:
    """Return the labels of a sandbox that serves *rollout*."""
    run = rollout.subject.run
    return {ROLLOUT_LABEL: rollout.subject.key} | ({RUN_LABEL: run.key} if run else {})
