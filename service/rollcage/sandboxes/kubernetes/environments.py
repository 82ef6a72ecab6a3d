"""
Environments as custom resources of one namespace, with their status.

A resource that cannot be read keeps the last recipe that could, and its status
says what is wrong: a typing error must not empty a pool.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from rollcage.core.environment import Environment, EnvironmentInvalid
from rollcage.sandboxes.kubernetes import names
from rollcage.sandboxes.kubernetes.refusals import NotThere
from rollcage.sandboxes.kubernetes.watching import Listed, Present, follow

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.sandboxes.recipes import Fare

    Json = dict[str, Any]

log = structlog.get_logger(__name__)

_READY: Final = "Ready"
_ACCEPTED: Final = "Accepted"
_MOST_MESSAGE: Final = 4096


class KubernetesRecipes:
    """The environments of one namespace."""

    def __init__(self, api: Api, *, namespace: str) -> None:
        self._api = api
        self._path = f"/apis/rollcage.dev/v1alpha1/namespaces/{namespace}/environments"
        self._resources: dict[str, Json] = {}
        self._valid: dict[str, Environment] = {}
        self._wrong: dict[str, str] = {}

    @asynccontextmanager
    async def observe(self) -> AsyncIterator[AsyncIterator[Mapping[str, Environment]]]:
        """Follow the resources."""
        async with aclosing(self._sets()) as sets:
            yield sets

    async def report(self, name: str, fare: Fare) -> None:
        """Write the status; what has not changed keeps its date."""
        resource = self._resources.get(name)
        if resource is None:
            return
        status = {"status": _status(resource, fare, self._wrong.get(name), datetime.now(UTC))}
        try:
            answer = await self._api.request(
                "PATCH", f"{self._path}/{name}/status", body=status, content_type="application/merge-patch+json"
            )
        except NotThere:
            return
        self._resources[name] = answer

    async def _sets(self) -> AsyncGenerator[Mapping[str, Environment]]:
        async with aclosing(follow(self._api, self._path)) as updates:
            async for update in updates:
                before = dict(self._valid)
                if isinstance(update, Listed):
                    found = {resource["metadata"]["name"]: resource for resource in update.objects}
                    for name in self._resources.keys() - found.keys():
                        self._drop(name)
                    for resource in found.values():
                        self._read(resource)
                elif isinstance(update, Present):
                    self._read(update.object)
                else:
                    self._drop(update.object["metadata"]["name"])
                # Our own writes of the status come back as changes too.
                if isinstance(update, Listed) or before != self._valid:
                    yield dict(self._valid)

    def _read(self, resource: Json) -> None:
        # Items of a list come without these two.
        resource = {"apiVersion": "rollcage.dev/v1alpha1", "kind": "Environment", **resource}
        name = resource["metadata"]["name"]
        self._resources[name] = resource
        try:
            self._valid[name] = Environment.from_resource(resource)
            self._wrong.pop(name, None)
        except EnvironmentInvalid as refusal:
            self._wrong[name] = str(refusal)
            log.warning("environment_invalid", environment=name, problems=str(refusal))

    def _drop(self, name: str) -> None:
        for remembered in (self._resources, self._valid, self._wrong):
            remembered.pop(name, None)


def _status(resource: Json, fare: Fare, wrong: str | None, now: datetime) -> Json:
    generation = resource["metadata"].get("generation", 0)
    before = {one["type"]: one for one in resource.get("status", {}).get("conditions", ())}

    def condition(kind: str, holds: bool, reason: str, message: str) -> Json:  # noqa: FBT001 - a condition is one
        status = "True" if holds else "False"
        last = before.get(kind, {})
        since = last["lastTransitionTime"] if last.get("status") == status else now.isoformat(timespec="seconds")
        return {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": message[:_MOST_MESSAGE],
            "lastTransitionTime": since,
            "observedGeneration": generation,
        }

    return {
        "observedGeneration": generation,
        "ready": fare.ready,
        "starting": fare.starting,
        "claimed": fare.claimed,
        "waiting": fare.waiting,
        "selector": f"{names.ENVIRONMENT_LABEL}={resource['metadata']['name']}",
        "conditions": [
            condition(_ACCEPTED, wrong is None, "Valid" if wrong is None else "Invalid", wrong or ""),
            condition(_READY, fare.healthy, fare.reason, fare.message),
        ],
    }
