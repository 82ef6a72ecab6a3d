"""
Suspect oneself: a gateway that reaches no sandbox at all is cut off, not surrounded by dead ones.

Exchanging a dead sandbox spends it. A gateway behind a broken network would
spend a whole warm pool within seconds; so after a few in a row it stops
exchanging, until it reaches one again.
"""

from typing import Final

# More than die together in a bad moment, fewer than a pool has.
_SUSPICIOUS: Final = 8


class Isolation:
    """Which sandboxes this gateway found dead since it last reached one."""

    def __init__(self) -> None:
        self._unreached: set[str] = set()

    @property
    def suspected(self) -> bool:
        """Whether it is more likely that the fault is on this side."""
        return len(self._unreached) >= _SUSPICIOUS

    def reached(self) -> None:
        """Note that a sandbox answered."""
        self._unreached.clear()

    def unreached(self, sandbox: str) -> None:
        """Note that a sandbox was out of reach."""
        if not self.suspected:
            self._unreached.add(sandbox)
