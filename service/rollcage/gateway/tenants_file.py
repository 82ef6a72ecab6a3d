"""
Keep the tenants as their file says, while it changes.

The file is a mounted Kubernetes Secret: it is replaced as a whole, by moving a
link, and may be gone for an instant. So its content is compared, not its time.
A new file that cannot be used changes nothing and is complained about once.
"""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from rollcage.gateway.tenants import Directory, Tenant, TenantsInvalid, read_tenants
from rollcage.telemetry.labels import ReloadLabel
from rollcage.telemetry.metrics import Metrics

# The kubelet itself takes up to a minute to bring a changed Secret.
LOOK_EVERY: Final = timedelta(seconds=5)

_log = structlog.get_logger()


class TenantsFile:
    """The tenants of a file, as last read well."""

    def __init__(self, path: Path, *, metrics: Metrics) -> None:
        """Read the file; TenantsInvalid if it cannot be used, since without tenants nobody can be let in."""
        self._path = path
        self._metrics = metrics
        try:
            self._content = path.read_bytes()
        except OSError as error:
            raise TenantsInvalid((f"cannot be read: {error.strerror}",)) from error
        self._directory = _read(self._content)

    @property
    def directory(self) -> Directory:
        """The tenants that are let in now."""
        return self._directory

    def holder(self, token: str) -> Tenant | None:
        """Return whose token it is, or None."""
        return self._directory.holder(token)

    async def follow(self, every: timedelta = LOOK_EVERY) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(every.total_seconds())
            await self.look()

    async def look(self) -> None:
        """Read the file if it has changed; what stands stays if the new one cannot be used."""
        try:
            content = await asyncio.to_thread(self._path.read_bytes)
        except OSError as error:
            content = f"# {error.strerror}".encode()
        if content == self._content:
            return
        self._content = content
        try:
            self._directory = _read(content)
        except TenantsInvalid as refusal:
            self._metrics.tenant_reloads.at(ReloadLabel.REFUSED).inc()
            self._metrics.tenants_stale.at().set(1)
            _log.error("tenants_refused", path=str(self._path), problems=refusal.problems)
            return
        self._metrics.tenant_reloads.at(ReloadLabel.TAKEN).inc()
        self._metrics.tenants_stale.at().set(0)
        _log.info("tenants_reloaded", path=str(self._path), tenants=len(self._directory.tenants))


def _read(content: bytes) -> Directory:
    try:
        return read_tenants(content.decode())
    except UnicodeDecodeError as error:
        raise TenantsInvalid(("is not a text",)) from error
