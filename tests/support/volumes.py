"""
A directory of a worker as a volume, for clusters whose own volumes belong to root.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.kind import Cluster


@contextmanager
def node_volume(cluster: Cluster, core: Any, name: str, *, storage_class: str, size: str) -> Iterator[None]:
    """Lend a volume of this class that everybody may write to; whoever claims it first has it."""
    node, directory = f"{cluster.name}-worker", f"/var/{name}"
    cluster.engine.docker("exec", node, "sh", "-c", f"mkdir -p {directory} && chmod 777 {directory}")
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
    core.create_persistent_volume(
        {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": size},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": storage_class,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": directory},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }
    )
    try:
        yield
    finally:
        core.delete_persistent_volume(name)
        cluster.engine.docker("exec", node, "rm", "-rf", directory)
