"""
What a gateway remembers of a rollout between two calls: where it is, and as whom it may speak there.

Losing it costs a round trip; a stale one is refused by the sandbox's fence.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from rollcage.core.ids import RolloutKey
from rollcage.rollouts.line import header
from rollcage.store.records import Sandbox
from rollcage.wire.messages import BOOT_HEADER
from rollcage.wire.tokens import Scope, Signer

# A token is signed once and used for many calls: signing costs more than the rest of a request.
_TOKEN_LIFETIME: Final = timedelta(minutes=20)
_TOKEN_RENEWED: Final = timedelta(minutes=10)

# Some 2 KiB each.
_MOST_ROUTES: Final = 20_000


NEVER: Final = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class Route:
    """One rollout's sandbox as this gateway knows it."""

    rollout: RolloutKey
    sandbox: Sandbox
    # The sandbox's boot, once known: it refuses to serve as another one.
    boot: str = ""
    # Whether a call may have reached it, as far as this gateway knows.
    delivered: bool = False
    # When the rollout began, by the loop's own time, once known.
    began: float | None = None
    head: bytes = b""
    signed_at: datetime = NEVER

    def knows(self, boot: str) -> None:
        """Remember the first boot id that was told."""
        if boot and not self.boot:
            self.boot, self.head = boot, b""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where a sandbox is, ``http://host:port`` or ``unix:/path``, and the headers that it serves."""

    address: str
    headers: Mapping[str, str]


class Routes:
    """The routes of this process, the longest unused giving way."""

    def __init__(self, signer: Signer, *, now: Callable[[], datetime]) -> None:
        self._signer = signer
        self._now = now
        self._routes: OrderedDict[RolloutKey, Route] = OrderedDict()

    def get(self, rollout: RolloutKey) -> Route | None:
        """Return the rollout's route, if it is remembered."""
        route = self._routes.get(rollout)
        if route:
            self._routes.move_to_end(rollout)
        return route

    def found(self, rollout: RolloutKey, sandbox: Sandbox, boot: str = "") -> Route:
        """Remember where a rollout is; what is known of the same sandbox is kept."""
        route = self._routes.get(rollout)
        if route is None or route.sandbox.name != sandbox.name:
            route = self._routes[rollout] = Route(rollout, sandbox)
            if len(self._routes) > _MOST_ROUTES:
                self._routes.popitem(last=False)
        if boot:
            route.delivered = True
            route.knows(boot)
        return route

    def forget(self, route: Route) -> None:
        """Forget a route that led nowhere, unless a newer one stands in its place."""
        if self._routes.get(route.rollout) is route:
            del self._routes[route.rollout]

    def reach(self, rollout: RolloutKey, sandbox: Sandbox) -> Reach:
        """Return how to speak to a rollout's sandbox for a while."""
        route = self.found(rollout, sandbox)
        headers = {"Authorization": self._token(route, self._now())}
        if route.boot:
            headers[BOOT_HEADER] = route.boot
        return Reach(sandbox.address, headers)

    def head(self, route: Route) -> bytes:
        """Return the headers that every request on this route carries, signed not long ago."""
        now = self._now()
        if not route.head or not timedelta() <= now - route.signed_at < _TOKEN_RENEWED:
            route.head = b"Host: toolserver\r\n" + header("Authorization", self._token(route, now))
            if route.boot:
                route.head += header(BOOT_HEADER, route.boot)
            route.signed_at = now
        return route.head

    def _token(self, route: Route, now: datetime) -> str:
        return self._signer.authorization(
            sandbox=route.sandbox.name, rollout=route.rollout, scope=Scope.ACT, now=now, lifetime=_TOKEN_LIFETIME
        )
