"""
Let a request in as somebody, or not at all.

A wrong or missing token is the sender's own mistake and may be a 401: it is
made once, when a job is set up, and seen at its first call.
"""

from typing import Final

from rollcage.gateway.errors import NotAuthorized
from rollcage.gateway.ports import Doorkeeper
from rollcage.gateway.tenants import Tenant
from rollcage.telemetry.labels import AuthLabel
from rollcage.telemetry.metrics import Metrics

_SCHEME: Final = "bearer "


def admitted(doorkeeper: Doorkeeper, metrics: Metrics, token: str | None) -> Tenant:
    """Return the tenant whose token came along, or raise NotAuthorized."""
    if token is None:
        metrics.auth_failures.at(AuthLabel.MISSING).inc()
        raise NotAuthorized("no token: send Authorization: Bearer, or put it into the path after /tokens/")
    tenant = doorkeeper.holder(token)
    if tenant is None:
        metrics.auth_failures.at(AuthLabel.WRONG).inc()
        raise NotAuthorized("nobody has this token")
    return tenant


def bearer(authorization: str | None) -> str | None:
    """Return the token in a header, or None."""
    if authorization is None or authorization[: len(_SCHEME)].lower() != _SCHEME:
        return None
    return authorization[len(_SCHEME) :].strip() or None
