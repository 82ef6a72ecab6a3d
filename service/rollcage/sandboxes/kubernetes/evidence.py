"""
Collect what the cluster still knows about a sandbox, before it forgets.

A pod's events live an hour, a node's conditions until they change. Evidence
is for people and for verdicts; that some of it cannot be had is no error.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from rollcage.sandboxes.kubernetes.refusals import NotThere
from rollcage.sandboxes.source import SandboxRejected

if TYPE_CHECKING:
    from rollcage.sandboxes.kubernetes.api import Api
    from rollcage.sandboxes.source import Sandbox

_MOST_EVENTS: Final = 50
_MOST_TEXT: Final = 512


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that somebody in the cluster said about an object."""

    reason: str
    """The sayer's own word: Killing, FailedScheduling, SystemOOM."""
    message: str
    source: str
    last_seen: str
    count: int
    warning: bool


async def about(api: Api, namespace: str, sandbox: Sandbox) -> dict[str, Any]:
    """Return the events of a sandbox and of its node, and the node's conditions, as JSON."""
    found: dict[str, Any] = {
        "events": await _events(api, namespace, kind="Pod", name=sandbox.name, uid=sandbox.uid),
    }
    if sandbox.node:
        found["node"] = sandbox.node
        # SystemOOM tells the node's memory from the sandbox's own.
        found["node_events"] = await _events(api, "default", kind="Node", name=sandbox.node)
        found["node_conditions"] = await node_conditions(api, sandbox.node)
    return found


async def _events(api: Api, namespace: str, *, kind: str, name: str, uid: str = "") -> list[dict[str, Any]]:
    return [asdict(event) for event in await events_about(api, namespace, kind=kind, name=name, uid=uid)]


async def events_about(api: Api, namespace: str, *, kind: str, name: str, uid: str = "") -> tuple[Event, ...]:
    """Return the events about an object that are still there, oldest first."""
    about = {"involvedObject.kind": kind, "involvedObject.name": name}
    if uid:
        about["involvedObject.uid"] = uid
    query = {"fieldSelector": ",".join(f"{k}={v}" for k, v in about.items()), "limit": str(_MOST_EVENTS)}
    answer = await api.request("GET", f"/api/v1/namespaces/{namespace}/events", query=query)
    return tuple(sorted((_event(one) for one in answer["items"]), key=lambda event: event.last_seen))


async def node_conditions(api: Api, node: str) -> dict[str, str]:
    """Return a node's conditions (Ready, MemoryPressure, ...); empty when it is gone or not ours to see."""
    try:
        answer = await api.request("GET", f"/api/v1/nodes/{node}")
    except (NotThere, SandboxRejected):
        return {}
    return {one["type"]: one["status"] for one in answer["status"].get("conditions", ())}


def _event(one: dict[str, Any]) -> Event:
    seen = one.get("lastTimestamp") or one.get("eventTime") or one["metadata"]["creationTimestamp"]
    return Event(
        reason=one.get("reason", ""),
        message=one.get("message", "")[:_MOST_TEXT],
        source=one.get("reportingComponent") or one.get("source", {}).get("component", ""),
        last_seen=seen,
        count=one.get("count") or 1,
        warning=one.get("type") == "Warning",
    )
