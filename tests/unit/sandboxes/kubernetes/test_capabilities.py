from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollcage.sandboxes.kubernetes.capabilities import can_mount_images, image_volumes
from support.api_server import Answer, ScriptedApiServer, failure

if TYPE_CHECKING:
    from pathlib import Path


def node(runtime: str, kubelet: str) -> dict[str, Any]:
    return {"status": {"nodeInfo": {"containerRuntimeVersion": runtime, "kubeletVersion": kubelet}}}


ABLE = node("containerd://2.4.2", "v1.36.3")
CASES = {
    "all nodes are new enough": ([ABLE, ABLE], True),
    "one kubelet is too old": ([ABLE, node("containerd://2.4.2", "v1.34.1-eks-1")], False),
    "one containerd is too old": ([ABLE, node("containerd://1.7.27", "v1.36.3")], False),
    "a runtime that nobody has tried": ([node("cri-o://1.36.0", "v1.36.3")], False),
    "versions that are none": ([node("containerd://main", "v1.36.3")], False),
    "no nodes yet": ([], False),
}


@pytest.mark.parametrize(("nodes", "able"), CASES.values(), ids=CASES.keys())
def test_images_are_mounted_only_where_every_node_can(nodes: list[dict[str, Any]], *, able: bool) -> None:
    assert can_mount_images(nodes) is able


async def test_the_nodes_are_asked(tmp_path: Path) -> None:
    async with ScriptedApiServer(Answer({"items": [ABLE]})).served(tmp_path) as api:
        assert await image_volumes(api)


async def test_nodes_that_may_not_be_asked_are_taken_to_be_unable(tmp_path: Path) -> None:
    async with ScriptedApiServer(failure(403, "Forbidden")).served(tmp_path) as api:
        assert not await image_volumes(api)
