"""
Say whether trainers may be sent here.

What must be there has to be seen once. After that its loss is reported, but
does not close the door: running rollouts go on without Redis, and if all
gateways left the service at once, nobody would be there to serve them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rollcage.gateway.admission import Admission
from rollcage.gateway.ports import Checks


@dataclass(frozen=True, slots=True)
class Report:
    """Whether the gateway is ready, and how each part stands now."""

    ready: bool
    draining: bool
    checks: Mapping[str, bool]


class Readiness:
    """The gateway's own idea of whether it can serve."""

    def __init__(self, checks: Checks, admission: Admission) -> None:
        self._checks = checks
        self._admission = admission
        self._seen: set[str] = set()

    async def report(self) -> Report:
        """Look at everything now."""
        checks = await self._checks()
        self._seen.update(name for name, good in checks.items() if good)
        draining = self._admission.draining
        return Report(not draining and self._seen.issuperset(checks), draining, checks)
