"""
Put every rollout that ends into the archive, however long the archive is away.

Any number of gateways do it side by side. A rollout may be written twice, never
forgotten as long as the store keeps it; one that is graded later is written
again, with its score.
"""

import asyncio
from datetime import timedelta
from typing import Final

import structlog

from rollcage.core.errors import RollcageError
from rollcage.core.ids import RolloutKey
from rollcage.rollouts.archive import archive
from rollcage.rollouts.usecases import UseCases
from rollcage.store.archives import REST
from rollcage.store.store import Store
from rollcage.telemetry.labels import ArchiveLabel
from rollcage.telemetry.metrics import Metrics

_LOOK_AGAIN: Final = timedelta(seconds=5)

_log = structlog.get_logger()


class Archivist:
    """Writes to one place: a directory, or any URL that fsspec knows."""

    def __init__(self, place: str, *, store: Store, use_cases: UseCases, metrics: Metrics) -> None:
        self._place = place.rstrip("/")
        self._store = store
        self._use_cases = use_cases
        self._metrics = metrics

    async def work(self) -> None:
        """Archive for ever."""
        while True:
            if not await self.round():
                await asyncio.sleep(_LOOK_AGAIN.total_seconds())

    async def round(self, *, rest: timedelta = REST) -> int:
        """Archive what is due now, and return how much that was."""
        try:
            due = await self._store.archives.due(rest=rest)
        except RollcageError as error:
            _log.warning("archive_waits", code=error.code)
            return 0
        for rollout in due.rollouts:
            if await self._written(rollout):
                await self._struck_off(rollout, due.ticket)
        return len(due.rollouts)

    async def _written(self, key: RolloutKey) -> bool:
        try:
            record = await self._store.rollouts.get(key)
            # Without names, after a loss of memory, there is nothing that anybody would look for.
            if record is None or record.subject.rollout is None:
                return True
            rollout, run = record.subject.rollout, record.subject.run
            place = f"{self._place}/tenant={rollout.tenant}/run={run.name if run else ''}/{rollout.name}.jsonl"
            await archive(self._use_cases, rollout, to=place)
        except Exception as error:  # noqa: BLE001 - each kind of place fails in its own way, and none may stop us
            _log.warning("archive_failed", rollout=key, error=f"{type(error).__name__}: {error}"[:500])
            self._metrics.archives.at(ArchiveLabel.FAILED).inc()
            return False
        self._metrics.archives.at(ArchiveLabel.WRITTEN).inc()
        return True

    async def _struck_off(self, rollout: RolloutKey, ticket: str) -> None:
        try:
            await self._store.archives.done(rollout, ticket=ticket)
        except RollcageError as error:
            # It will be written once more, the same.
            _log.warning("archive_waits", code=error.code)
