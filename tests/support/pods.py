"""
Pods as the API server of a real cluster (1.36, containerd 2.4) showed them, cut to what matters.
"""

from __future__ import annotations

from typing import Any

from rollcage.sandboxes.kubernetes import names

Json = dict[str, Any]

IMAGE_ID = "sha256:56fd695e52d36744b766864c39daf587ae40023500dffeb626daac55e5728d4f"
STARTED = "2026-11-16T11:52:40Z"
FINISHED = "2026-11-16T11:52:49Z"
NEVER = "1970-01-01T00:00:00Z"


def pod(status: Json, name: str = "sbx-1", uid: str = "uid-1", **metadata: Any) -> Json:
    return {
        "metadata": {
            "name": name,
            "uid": uid,
            "creationTimestamp": "2026-11-16T11:52:37Z",
            "resourceVersion": "7",
            "labels": {
                names.ENVIRONMENT_LABEL: "small",
                names.TEMPLATE_LABEL: "413f6497cdf728a9",
                names.MANAGED_BY_LABEL: names.MANAGED_BY,
            },
            **metadata,
        },
        "spec": {"nodeName": "worker-1"},
        "status": status,
    }


def status(phase: str, *, state: Json | None = None, conditions: list[Json] | None = None, **fields: Any) -> Json:
    containers = [{"name": names.CONTAINER, "state": state, "image": "docker.io/x:1", "imageID": IMAGE_ID}]
    return {
        "phase": phase,
        "podIP": "10.245.1.10",
        "conditions": conditions or [],
        **({"containerStatuses": containers} if state else {}),
        **fields,
    }


def running(**fields: Any) -> Json:
    conditions = [{"type": "Ready", "status": "True"}, {"type": "ContainersReady", "status": "True"}]
    return status("Running", state={"running": {"startedAt": STARTED}}, **{"conditions": conditions, **fields})


def waiting(reason: str, message: str = "") -> Json:
    return status("Pending", state={"waiting": {"reason": reason, "message": message}})


def ended(exit_code: int, why: str, /, phase: str = "Failed", finished: str = FINISHED, **fields: Any) -> Json:
    end = {"exitCode": exit_code, "reason": why, "startedAt": STARTED, "finishedAt": finished}
    return status(phase, state={"terminated": end}, **fields)


def disruption(reason: str, at: str = STARTED) -> Json:
    return {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": at}
