"""
Reserve sandboxes ahead of a step.

A run has at most one reservation per environment. As sandboxes become ready
they are set aside for it in its turn; its claims use it up, time ends it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from rollcage.core.ids import RunId, environment_name, tenant_key, trainers_id
from rollcage.store.link import Link
from rollcage.store.records import moment

# Setting so many aside at once takes Redis some 20 ms, in which it does nothing else.
MAX_RESERVED: Final = 10_000


@dataclass(frozen=True, slots=True)
class Reservation:
    """How a reservation stands."""

    count: int
    # Not yet claimed, of which so many are ready and set aside.
    left: int
    set_aside: int
    expires_at: datetime | None


class Reservations:
    """The reservations of all runs."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def reserve(
        self, run: RunId, *, environment: str, reservation: str, count: int, ttl: timedelta, quota: int
    ) -> Reservation:
        """
        Reserve *count* sandboxes, those that its rollouts already wait for included.

        The same reservation id again changes nothing; another one replaces what
        is left of the old. *quota* bounds what the tenant's runs hold together.
        """
        if not 0 <= count <= MAX_RESERVED:
            raise ValueError(f"between 0 and {MAX_RESERVED} sandboxes can be reserved, not {count}")
        held, left, aside, expires = await self._link.run(
            "reserve",
            environment=environment_name(environment),
            run=run.key,
            tenant_key=tenant_key(run.tenant),
            id=trainers_id("reservation", reservation),
            count=count,
            ttl=int(ttl.total_seconds() * 1000),
            quota=quota,
        )
        return Reservation(held, left, aside, moment(expires) if int(expires) else None)

    async def cancel(self, run: RunId, *, environment: str) -> None:
        """Let go of what the run has reserved."""
        await self._link.run(
            "reserve",
            environment=environment_name(environment),
            run=run.key,
            tenant_key=tenant_key(run.tenant),
            id="",
            count=0,
            ttl=0,
            quota=MAX_RESERVED,
        )
