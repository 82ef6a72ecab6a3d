"""
Everything that a cluster has, by name, to see what was left behind.
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

# They come and go by themselves.
_FLEETING = {"Event", "ComponentStatus", "PodMetrics", "IPAddress"}


def everything(core: Any) -> set[str]:
    """Return kind, namespace and name of every object, such as ``Secret default/token``."""
    found = set()
    for path, kind in _kinds(core):
        for one in get(core, path)["items"]:
            found.add(f"{kind} {one['metadata'].get('namespace', '')}/{one['metadata']['name']}")
    return found


def get(core: Any, path: str) -> Json:
    """Return what the API server has at a path."""
    found: Json = json.loads(text(core, path, "application/json"))
    return found


def text(core: Any, path: str, media: str = "*/*") -> str:
    """Return what the API server has at a path, as it tells it."""
    client = core.api_client
    method, url, headers, *_ = client.param_serialize(
        "GET", path, header_params={"Accept": media}, auth_settings=["BearerToken"]
    )
    answer = client.call_api(method, url, headers)
    answer.read()
    told: str = answer.data.decode()
    return told


def _kinds(core: Any) -> list[tuple[str, str]]:
    groups = [f"/apis/{one['preferredVersion']['groupVersion']}" for one in get(core, "/apis")["groups"]]
    return [
        (f"{base}/{one['name']}", one["kind"])
        for base in ("/api/v1", *groups)
        for one in get(core, base)["resources"]
        if "list" in one["verbs"] and one["kind"] not in _FLEETING
    ]
