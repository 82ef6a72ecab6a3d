"""
Find out what a cluster can do.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from rollcage.sandboxes.source import SandboxRejected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rollcage.sandboxes.kubernetes.api import Api

    Json = dict[str, Any]

log = logging.getLogger(__name__)


async def image_volumes(api: Api) -> bool:
    """Ask the nodes whether images can be mounted; where that may not be asked, they cannot."""
    try:
        answer = await api.request("GET", "/api/v1/nodes")
    except SandboxRejected as error:
        log.warning("nodes_not_readable", extra={"error": str(error)})
        return False
    return can_mount_images(answer["items"])


def can_mount_images(nodes: Sequence[Json]) -> bool:
    """
    Tell whether every node can mount an image as a volume, and run what is in it.

    Kubelets do by default since 1.35, containerd since 2.1. Another runtime may
    as well; an environment that knows can say so.
    """
    return bool(nodes) and all(_mounts_images(node["status"]["nodeInfo"]) for node in nodes)


def _mounts_images(info: dict[str, str]) -> bool:
    runtime, _, version = info["containerRuntimeVersion"].partition("://")
    return runtime == "containerd" and _version(version) >= (2, 1) and _version(info["kubeletVersion"]) >= (1, 35)


def _version(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.lstrip("v").split(".")[:2])
    except ValueError:
        return ()
