"""
Agree on one leader by a Lease of the cluster's.

An epoch goes with every election and only ever rises; the store refuses
writers of an older one. A leader that could not renew in time stops by itself
before another may begin, so a process that was paused does no harm.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from rollcage.core.errors import NotLeader, RollcageError
from rollcage.sandboxes.kubernetes.refusals import Conflict, NotThere

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from rollcage.sandboxes.kubernetes.api import Api

    Json = dict[str, Any]

log = structlog.get_logger(__name__)

# A second replica takes over this long after the last sign of the first.
DURATION: Final = timedelta(seconds=15)
RENEW: Final = timedelta(seconds=3)
# The leader gives up this much earlier than the others begin: clocks run at different speeds, threads get paused.
MARGIN: Final = timedelta(seconds=3)


@dataclass(frozen=True, slots=True)
class Seat:
    """The lease as it was last read."""

    holder: str
    epoch: int
    version: str
    exists: bool = True


class Lease:
    """One lease object, and who we are."""

    def __init__(
        self, api: Api, *, namespace: str, name: str, identity: str, floor: Callable[[], Awaitable[int]]
    ) -> None:
        # The floor is the highest epoch that the store has seen.
        self._api = api
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._floor = floor
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"

    async def read(self) -> Seat:
        """Read who holds it."""
        try:
            found = await self._api.request("GET", f"{self._path}/{self._name}")
        except NotThere:
            return Seat("", 0, "", exists=False)
        return _seat(found)

    async def take(self, seat: Seat) -> Seat:
        """Take the seat as it was read; raise Conflict if somebody else was faster."""
        # A lease that was deleted begins to count anew; the store remembers how far it was.
        epoch = max(seat.epoch, await self._floor()) + 1
        return await self._write(seat, self._identity, epoch)

    async def renew(self, seat: Seat) -> Seat:
        """Say that we are still there."""
        return await self._write(seat, self._identity, seat.epoch)

    async def release(self, seat: Seat) -> None:
        """Leave the seat to whoever wants it."""
        await self._write(seat, "", seat.epoch)

    async def _write(self, seat: Seat, holder: str, epoch: int) -> Seat:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        body: Json = {
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": {
                "holderIdentity": holder,
                "leaseDurationSeconds": int(DURATION.total_seconds()),
                "renewTime": now,
                "leaseTransitions": epoch,
            },
        }
        if not seat.exists:
            return _seat(await self._api.request("POST", self._path, body=body))
        body["metadata"]["resourceVersion"] = seat.version
        return _seat(await self._api.request("PUT", f"{self._path}/{self._name}", body=body))


class Leadership:
    """An election that was won, for as long as it is renewed."""

    def __init__(self, epoch: int, *, lapses: bool = True) -> None:
        self.epoch = epoch
        self._lapses = lapses
        self._renewed = time.monotonic()

    def holds(self) -> bool:
        """Tell whether nobody else can lead yet."""
        return not self._lapses or time.monotonic() - self._renewed < (DURATION - MARGIN).total_seconds()

    def renewed(self, asked_at: float) -> None:
        """Count from when the renewal was asked for: it may have been written at once and answered late."""
        self._renewed = asked_at


async def elected(lease: Lease) -> tuple[Leadership, Seat]:
    """Return as soon as we lead."""
    last, since = Seat("", -1, ""), time.monotonic()
    while True:
        try:
            seat = await lease.read()
            if (seat.holder, seat.version) != (last.holder, last.version):
                # Judged by our own stopwatch, from when we saw it change: no two clocks need to agree.
                last, since = seat, time.monotonic()
            if not seat.holder or time.monotonic() - since > DURATION.total_seconds():
                taken = await lease.take(seat)
                log.info("election_won", epoch=taken.epoch)
                return Leadership(taken.epoch), taken
        except Conflict:
            pass
        except RollcageError as error:
            log.warning("election_failed", error=str(error))
        await asyncio.sleep(RENEW.total_seconds() / 2)


@asynccontextmanager
async def leading(lease: Lease) -> AsyncIterator[Leadership]:
    """Lead for the length of the block; raises NotLeader into it when the lease could not be kept."""
    leadership, seat = await elected(lease)
    try:
        async with asyncio.TaskGroup() as tasks:
            keeping = tasks.create_task(_keep(lease, leadership, seat))
            try:
                yield leadership
            finally:
                keeping.cancel()
    except* NotLeader as lost:
        raise lost.exceptions[0] from None
    finally:
        await _release(lease, leadership)


async def _keep(lease: Lease, leadership: Leadership, seat: Seat) -> None:
    while True:
        await asyncio.sleep(RENEW.total_seconds())
        if not leadership.holds():
            raise NotLeader(epoch=leadership.epoch, leader=leadership.epoch)
        asked_at = time.monotonic()
        try:
            async with asyncio.timeout(RENEW.total_seconds()):
                seat = await _renewed(lease, seat)
        except NotLeader:
            raise
        except (RollcageError, TimeoutError) as error:
            log.warning("renewal_failed", error=str(error))
        else:
            leadership.renewed(asked_at)


async def _renewed(lease: Lease, seat: Seat) -> Seat:
    try:
        return await lease.renew(seat)
    except Conflict:
        # Our own last renewal may have been written and its answer lost; another leader's epoch is higher.
        found = await lease.read()
        if found.epoch != seat.epoch:
            raise NotLeader(epoch=seat.epoch, leader=found.epoch) from None
        return await lease.renew(found)


async def _release(lease: Lease, leadership: Leadership) -> None:
    try:
        async with asyncio.timeout(RENEW.total_seconds()):
            seat = await lease.read()
            if seat.epoch == leadership.epoch:
                await lease.release(seat)
    except (RollcageError, TimeoutError) as error:
        # It lapses by itself.
        log.info("lease_not_released", error=str(error))


def _seat(found: Json) -> Seat:
    spec = found.get("spec", {})
    return Seat(
        holder=spec.get("holderIdentity") or "",
        epoch=spec.get("leaseTransitions") or 0,
        version=found["metadata"]["resourceVersion"],
    )
