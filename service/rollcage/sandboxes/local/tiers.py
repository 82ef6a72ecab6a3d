"""
What can hold a sandbox in, best first, and what a machine has of it.

The order and the words for people stand here; trying belongs to ``detect``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from rollcage.core.errors import RollcageError


class Tier(StrEnum):
    """A way of holding sandboxes in."""

    BUBBLEWRAP = "bubblewrap"
    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    NONE = "none"


BEST_FIRST: Final = (Tier.BUBBLEWRAP, Tier.NAMESPACES, Tier.LANDLOCK)

REMEDIES: Final = {
    Tier.BUBBLEWRAP: "install bubblewrap where it is missing (apt-get install bubblewrap, dnf install bubblewrap)",
    Tier.NAMESPACES: "allow user namespaces (sysctl user.max_user_namespaces; on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns=0; in a container --privileged)",
    Tier.LANDLOCK: "use a kernel with Landlock (6.2 or later as root, 6.12 as an ordinary user; lsm=landlock,...)",
}


@dataclass(frozen=True, slots=True)
class Detection:
    """Which tier a machine offers, and why no better one."""

    tier: Tier
    refused: Mapping[Tier, str] = field(default_factory=dict)


class NoIsolation(RollcageError):
    """Nothing on this machine can hold a sandbox in; none was started."""

    code = "no_isolation"

    def __init__(self, refused: Mapping[Tier, str]) -> None:
        lines = [f"  {tier}: {reason}; {REMEDIES[tier]}" for tier, reason in refused.items()]
        super().__init__("\n".join(["nothing here can isolate a sandbox:", *lines]))
        self.refused = refused
