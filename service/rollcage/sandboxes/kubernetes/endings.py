"""
Tell from a pod how its sandbox ended: who ended it, and what proves it.

Decided from typed fields alone: reasons, conditions, exit codes, times. The
texts beside them are kept as evidence; some of them the model can write.

| seen on the pod | cause |
|---|---|
| its container ended before anyone else meddled, reason OOMKilled, exit code 137 (gVisor: 128) | out_of_memory |
| the same with any other exit code: a child was killed once, the container ended of something else | exited |
| container reason StartError or like it, or it never started | start_failed |
| container reason ContainerStatusUnknown | unknown |
| pod reason DeadlineExceeded | deadline |
| pod reason Evicted, condition DisruptionTarget: the node was short of something | evicted |
| pod reason Evicted without that condition, once the kubelet had let it in: its own limit | own_storage_limit |
| pod reason Preempting; DisruptionTarget PreemptionByScheduler | preempted |
| pod reason Terminated, Shutdown or NodeShutdown: the node shut down | evicted |
| pod reason NodeLost; DisruptionTarget DeletionByPodGC | node_lost |
| DisruptionTarget DeletionByTaintManager | node_lost if the node is silent, else evicted |
| DisruptionTarget EvictionByEvictionAPI, TerminationByKubelet or one not known here | evicted |
| a deletion time and nothing of the above | deleted |

What the table leaves open: an out-of-memory kill by the whole node looks like
one by the container's own limit (the kernel counts both); the node's events
tell them apart, see ``evidence``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.endings import EndCause, Ending
from rollcage.sandboxes.kubernetes import names

if TYPE_CHECKING:
    from collections.abc import Mapping

    Json = Mapping[str, Any]

# 128 + SIGKILL; gVisor's sandbox process dies as a whole and reports 128.
_OOM_EXIT_CODES: Final = frozenset({137, 128})
_START_REASONS: Final = frozenset({"StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError"})
_POD_REASONS: Final = {
    "DeadlineExceeded": EndCause.DEADLINE,
    "Preempting": EndCause.PREEMPTED,
    "NodeLost": EndCause.NODE_LOST,
    "Terminated": EndCause.EVICTED,
    "Shutdown": EndCause.EVICTED,
    "NodeShutdown": EndCause.EVICTED,
}
_DISRUPTIONS: Final = {
    "PreemptionByScheduler": EndCause.PREEMPTED,
    "DeletionByPodGC": EndCause.NODE_LOST,
}
_OVER: Final = frozenset({"Failed", "Succeeded"})
# Evidence is for people; a termination message is the model's to write, and long ones tell no more.
_MOST_TEXT: Final = 1024


def ending_of(pod: Json) -> Ending | None:
    """Return how a pod's sandbox ended, or None while it has not."""
    status = pod.get("status", {})
    end = container_state(pod, "terminated")
    over = status.get("phase") in _OVER or end is not None
    if not over and "deletionTimestamp" not in pod["metadata"]:
        return None
    cause = _cause(pod, end)
    told = end or _failed_installer(pod) or {}
    return Ending(
        cause=cause,
        exit_code=told.get("exitCode"),
        message=_cut(status.get("message") or told.get("message") or told.get("reason") or ""),
        details=_evidence(pod, told),
    )


def container_state(pod: Json, state: str) -> Json | None:
    """Return the sandbox's container in one of its states (waiting, running, terminated), if it is in that."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        if container["name"] == names.CONTAINER:
            found: Json | None = container.get("state", {}).get(state)
            return found
    return None


def condition(pod: Json, kind: str) -> Json:
    """Return a condition of a pod, empty if it has none of that kind."""
    found: Json = next((c for c in pod.get("status", {}).get("conditions", ()) if c["type"] == kind), {})
    return found


def node_is_silent(pod: Json) -> bool:
    """
    Tell whether the pod's node has stopped reporting.

    The node controller then takes Ready from the pod and leaves
    ContainersReady as it was; the kubelet itself always changes both, as long
    as a pod has no readiness gates, and ours have none.
    """
    return (
        condition(pod, "Ready").get("status") == "False" and condition(pod, "ContainersReady").get("status") == "True"
    )


def _cause(pod: Json, end: Json | None) -> EndCause:
    outside, since = _outside_cause(pod)
    if end is None:
        return outside or (EndCause.UNKNOWN if _has_started(pod) else EndCause.START_FAILED)
    own = _own_cause(end)
    if outside is None:
        return own
    # Whoever was dead already was not killed by what came later. In doubt it was the infrastructure.
    finished = _time(end.get("finishedAt"))
    return own if since and finished and finished < since else outside


def _outside_cause(pod: Json) -> tuple[EndCause | None, datetime | None]:
    """Return who else ended the pod and when that began; no time means that it cannot have come second."""
    reason = pod.get("status", {}).get("reason")
    disruption = condition(pod, "DisruptionTarget")
    disrupted = disruption.get("status") == "True"
    if reason in _POD_REASONS:
        return _POD_REASONS[reason], None
    if reason == "Evicted" and not disrupted:
        # Kubelets also turn pods away at the door under this name; those have no account of their containers.
        # One that was let in may have been evicted before the kubelet had told that its container runs.
        admitted = condition(pod, "Initialized").get("status") == "True"
        return EndCause.OWN_STORAGE_LIMIT if admitted else EndCause.START_FAILED, None
    if disrupted:
        return _disruption_cause(pod, disruption.get("reason", "")), _time(disruption.get("lastTransitionTime"))
    if "deletionTimestamp" in pod["metadata"]:
        return EndCause.DELETED, _deletion_asked(pod["metadata"])
    return None, None


def _deletion_asked(metadata: Json) -> datetime | None:
    """Return when the deletion was asked for, or None when the pod no longer tells."""
    deadline = _time(metadata["deletionTimestamp"])
    grace = metadata.get("deletionGracePeriodSeconds")
    # The kubelet's last word is a deletion with no grace, and that overwrites the time of the first one.
    return deadline - timedelta(seconds=grace) if deadline and grace else None


def _disruption_cause(pod: Json, reason: str) -> EndCause:
    if reason == "DeletionByTaintManager" and node_is_silent(pod):
        return EndCause.NODE_LOST
    return _DISRUPTIONS.get(reason, EndCause.EVICTED)


def _own_cause(end: Json) -> EndCause:
    reason = end.get("reason")
    if reason in _START_REASONS or not _started(end):
        return EndCause.START_FAILED
    if reason == "ContainerStatusUnknown":
        return EndCause.UNKNOWN
    # containerd says OOMKilled for ever once any process was; only the exit code tells whether it was PID 1.
    if reason == "OOMKilled" and end.get("exitCode") in _OOM_EXIT_CODES:
        return EndCause.OUT_OF_MEMORY
    return EndCause.EXITED


def _has_started(pod: Json) -> bool:
    end = container_state(pod, "terminated")
    return _started(end) if end else container_state(pod, "running") is not None


def _started(end: Json) -> bool:
    if end.get("reason") == "ContainerStatusUnknown":
        return True  # It has no times; that it is unknown now says that it was known once.
    started = _time(end.get("startedAt"))
    return started is not None and started.year > 1970  # noqa: PLR2004 - the epoch is how runtimes say never


def _failed_installer(pod: Json) -> Json | None:
    for container in pod.get("status", {}).get("initContainerStatuses", ()):
        end: Json = container.get("state", {}).get("terminated", {})
        if end.get("exitCode"):
            return end
    return None


def _evidence(pod: Json, end: Json) -> dict[str, str]:
    status = pod.get("status", {})
    disruption = condition(pod, "DisruptionTarget")
    conditions = status.get("conditions", ())
    found = {
        "pod_phase": status.get("phase"),
        "pod_reason": status.get("reason"),
        "pod_message": status.get("message"),
        "container_reason": end.get("reason"),
        "container_message": end.get("message"),
        "signal": end.get("signal"),
        "started_at": end.get("startedAt"),
        "finished_at": end.get("finishedAt"),
        "disruption": disruption.get("reason"),
        "disruption_message": disruption.get("message"),
        "disrupted_at": disruption.get("lastTransitionTime"),
        "deletion_at": pod["metadata"].get("deletionTimestamp"),
        "deletion_grace_seconds": pod["metadata"].get("deletionGracePeriodSeconds"),
        "runtime_class": pod.get("spec", {}).get("runtimeClassName"),
        "conditions": " ".join(f"{c['type']}={c['status']}" for c in conditions),
    }
    return {key: _cut(str(value)) for key, value in found.items() if value not in (None, "")}


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
