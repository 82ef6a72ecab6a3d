"""
Bound what is served at once, and let it come to its end when the gateway stops.

Counts in this process only. Places in line for a sandbox are the store's.
"""

from rollcage.gateway.errors import Overloaded, TenantBusy
from rollcage.gateway.tenants import Tenant
from rollcage.telemetry.labels import LimitLabel
from rollcage.telemetry.metrics import Metrics


class Admission:
    """The calls in flight: in all, and of each tenant."""

    def __init__(self, *, most: int, metrics: Metrics) -> None:
        self._most = most
        self._metrics = metrics
        # Looked up when somebody asks: every call would set it twice.
        metrics.requests_in_flight.at().set_function(lambda: self._all)
        self._of: dict[str, int] = {}
        self._all = 0
        self.draining = False

    @property
    def in_flight(self) -> int:
        """How many are being served now."""
        return self._all

    def enter(self, tenant: Tenant) -> None:
        """Count one in, or raise what it would be too much for; whoever is in leaves by ``leave``."""
        if self._all >= self._most:
            self._metrics.requests_refused.at(LimitLabel.IN_FLIGHT).inc()
            raise Overloaded(f"{self._all} calls are in flight")
        theirs = self._of.get(tenant.name, 0)
        if theirs >= tenant.quotas.in_flight_calls:
            self._metrics.requests_refused.at(LimitLabel.TENANT).inc()
            raise TenantBusy(quota=tenant.quotas.in_flight_calls)
        self._all += 1
        self._of[tenant.name] = theirs + 1

    def leave(self, tenant: Tenant) -> None:
        """Count one out."""
        self._all -= 1
        self._of[tenant.name] -= 1

    def drain(self) -> None:
        """Stop being ready. What arrives is still served, for as long as the door stays open."""
        self.draining = True
