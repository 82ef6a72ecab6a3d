"""
Sandboxes as pods of one namespace.

Makes, labels, removes and watches them, and translates what goes wrong. The
pod itself is written by ``manifest`` and read by ``reading``.
"""

from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.verdict_facts import Shield
from rollcage.sandboxes.kubernetes import evidence, names
from rollcage.sandboxes.kubernetes.ledger import Ledger
from rollcage.sandboxes.kubernetes.manifest import pod_manifest
from rollcage.sandboxes.kubernetes.refusals import Conflict, NotThere
from rollcage.sandboxes.kubernetes.watching import follow
from rollcage.sandboxes.source import SandboxRejected, SourceThrottled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Mapping

    from rollcage.core.environment import Environment
    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.sandboxes.kubernetes.manifest import Manifest
    from rollcage.sandboxes.source import Change, Sandbox

# Zero would take the pod out of the API server while it still runs, and nobody would see it end.
_DELETION_GRACE: Final = 1
# Quota admission counts with optimistic locking; the loser of a race may ask again at once.
_RACE_LOST: Final = 0.1
_IDENTITY: Final = frozenset(
    {names.ENVIRONMENT_LABEL, names.TEMPLATE_LABEL, names.EGRESS_LABEL, names.MANAGED_BY_LABEL}
)


class KubernetesSource:
    """The sandboxes of one namespace."""

    def __init__(
        self,
        api: Api,
        *,
        namespace: str,
        keys: Mapping[str, str],
        toolserver_image: str,
        image_volumes: bool,
    ) -> None:
        self._api = api
        self._namespace = namespace
        self._keys = dict(keys)
        self._toolserver_image = toolserver_image
        self._image_volumes = image_volumes
        self._pods = f"/api/v1/namespaces/{namespace}/pods"

    def template(self, environment: Environment) -> str:
        """Return the fingerprint of the pods made now; new keys or another toolserver make the old ones outdated."""
        template: str = self._manifest("", environment)["metadata"]["labels"][names.TEMPLATE_LABEL]
        return template

    def shield(self, environment: Environment) -> Shield:
        """Take a runtime that is asked for by name for gVisor, whose PID 1 a process can kill."""
        return Shield.FILTER if environment.spec.pod.runtime_class_name else Shield.KERNEL

    async def create(self, name: str, environment: Environment) -> None:
        """Ask for a sandbox; one that is there already under this name is taken for the answer."""
        try:
            await self._api.request("POST", self._pods, body=self._manifest(name, environment))
        except Conflict as conflict:
            if not conflict.already_exists:
                raise SourceThrottled(str(conflict), retry_after=_RACE_LOST) from conflict
            await self._adopt(name, environment)
        except NotThere as error:
            raise SandboxRejected(f"there is no namespace {self._namespace}") from error

    async def delete(self, name: str, *, uid: str) -> None:
        """Remove a sandbox, but not another one that has its name."""
        options = {"gracePeriodSeconds": _DELETION_GRACE, "preconditions": {"uid": uid}}
        try:
            await self._api.request("DELETE", f"{self._pods}/{name}", body=options)
        except (NotThere, Conflict):
            return  # Gone already, or the name is somebody else's now.

    async def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Add labels to a sandbox; those that say what it is cannot be changed."""
        if _IDENTITY & labels.keys():
            raise ValueError(f"{', '.join(sorted(_IDENTITY & labels.keys()))} never change")
        patch = {"metadata": {"labels": dict(labels)}}
        try:
            await self._api.request(
                "PATCH", f"{self._pods}/{name}", body=patch, content_type="application/merge-patch+json"
            )
        except NotThere:
            return

    @asynccontextmanager
    async def observe(self) -> AsyncIterator[AsyncIterator[Change]]:
        """Watch all sandboxes, through reconnections; after each new list, what vanished meanwhile is Gone."""
        async with aclosing(self._changes()) as changes:
            yield changes

    async def evidence(self, sandbox: Sandbox) -> Mapping[str, Any]:
        """Collect the events of pod and node, and the node's conditions, while the cluster still has them."""
        return await evidence.about(self._api, self._namespace, sandbox)

    async def _changes(self) -> AsyncGenerator[Change]:
        ledger = Ledger()
        async with aclosing(follow(self._api, self._pods, selector=names.SELECTOR)) as updates:
            async for update in updates:
                for change in ledger.changes(update):
                    yield change

    def _manifest(self, name: str, environment: Environment) -> Manifest:
        return pod_manifest(
            environment,
            name=name,
            namespace=self._namespace,
            keys=self._keys,
            toolserver_image=self._toolserver_image,
            image_volumes=self._image_volumes,
        )

    async def _adopt(self, name: str, environment: Environment) -> None:
        try:
            pod = await self._api.request("GET", f"{self._pods}/{name}")
        except NotThere:
            return  # It was there, and its end will be told.
        if pod["metadata"].get("labels", {}).get(names.ENVIRONMENT_LABEL) != environment.name:
            raise SandboxRejected(f"the name {name} is taken")
