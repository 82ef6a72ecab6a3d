from __future__ import annotations

from typing import Any

import pytest

from rollcage.core.endings import EndCause
from rollcage.sandboxes.kubernetes.endings import ending_of, node_is_silent
from support.pods import FINISHED, NEVER, STARTED, disruption, ended, pod, running, status, waiting

SILENT = [
    {"type": "Ready", "status": "False"},
    {"type": "ContainersReady", "status": "True"},
]
ADMITTED = [{"type": "Initialized", "status": "True"}]
LATER = "2026-11-16T11:55:00Z"
DELETED: dict[str, Any] = {"deletionTimestamp": "2026-11-16T11:52:46Z", "deletionGracePeriodSeconds": 1}
DELETED_LATER: dict[str, Any] = {"deletionTimestamp": LATER, "deletionGracePeriodSeconds": 1}
STORAGE = "Pod ephemeral local storage usage exceeds the total limit of containers 64Mi. "
START_ERROR = {"exitCode": 128, "reason": "StartError", "startedAt": NEVER, "finishedAt": FINISHED}


def by_kubelet(reason: str, **fields: Any) -> dict[str, Any]:
    return ended(137, "Error", reason=reason, **fields)


CASES = {
    "killed for its memory": (pod(ended(137, "OOMKilled")), EndCause.OUT_OF_MEMORY),
    "killed for its memory under gVisor, which says 128": (pod(ended(128, "OOMKilled")), EndCause.OUT_OF_MEMORY),
    "a child was killed for memory, then the toolserver ended well": (
        pod(ended(0, "OOMKilled", phase="Succeeded")),
        EndCause.EXITED,
    ),
    "a child was killed for memory, then the model lowered the limits of PID 1": (
        pod(ended(86, "OOMKilled")),
        EndCause.EXITED,
    ),
    "killed for its memory, deleted afterwards": (
        pod(ended(137, "OOMKilled"), **DELETED_LATER),
        EndCause.OUT_OF_MEMORY,
    ),
    "a child was killed for memory, then the pod was deleted and killed": (
        pod(ended(137, "OOMKilled"), **DELETED),
        EndCause.DELETED,
    ),
    "a child was killed for memory, then the pod was preempted": (
        pod(ended(137, "OOMKilled", conditions=[disruption("PreemptionByScheduler")]), **DELETED),
        EndCause.PREEMPTED,
    ),
    "killed for its memory, cleaned up by the garbage collector": (
        pod(ended(137, "OOMKilled", conditions=[disruption("DeletionByPodGC", LATER)]), **DELETED_LATER),
        EndCause.OUT_OF_MEMORY,
    ),
    "ended by itself": (pod(ended(1, "Error")), EndCause.EXITED),
    "killed by nobody we know": (pod(ended(137, "Error")), EndCause.EXITED),
    "the program is not there": (pod(status("Failed", state={"terminated": START_ERROR})), EndCause.START_FAILED),
    "the runtime lost the container": (
        pod(status("Failed", state={"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}})),
        EndCause.UNKNOWN,
    ),
    "the installer failed": (
        pod(
            status(
                "Failed",
                initContainerStatuses=[{"name": "toolserver", "state": {"terminated": {"exitCode": 1}}}],
                state={"waiting": {"reason": "PodInitializing"}},
            )
        ),
        EndCause.START_FAILED,
    ),
    "turned away by the kubelet": (pod(status("Failed", reason="OutOfpods")), EndCause.START_FAILED),
    "turned away by a node under pressure": (
        pod(status("Failed", reason="Evicted", message="The node had condition: [DiskPressure]. ")),
        EndCause.START_FAILED,
    ),
    "lived too long": (pod(ended(0, "Completed", reason="DeadlineExceeded")), EndCause.DEADLINE),
    "evicted for its own storage": (
        pod(by_kubelet("Evicted", message=STORAGE, conditions=ADMITTED)),
        EndCause.OWN_STORAGE_LIMIT,
    ),
    "evicted for its own storage before anyone was told that it ran": (
        pod({**waiting("ContainerCreating"), "phase": "Failed", "reason": "Evicted", "conditions": ADMITTED}),
        EndCause.OWN_STORAGE_LIMIT,
    ),
    "evicted for its own storage, the runtime forgot the container": (
        pod(
            status(
                "Failed",
                reason="Evicted",
                conditions=ADMITTED,
                state={"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}},
            )
        ),
        EndCause.OWN_STORAGE_LIMIT,
    ),
    "evicted because the node was short of memory": (
        pod(by_kubelet("Evicted", conditions=[disruption("TerminationByKubelet")])),
        EndCause.EVICTED,
    ),
    "the node shut down": (
        pod(by_kubelet("Terminated", conditions=[disruption("TerminationByKubelet")])),
        EndCause.EVICTED,
    ),
    "made way for a critical pod": (pod(by_kubelet("Preempting")), EndCause.PREEMPTED),
    "drained": (pod(running(conditions=[disruption("EvictionByEvictionAPI")]), **DELETED), EndCause.EVICTED),
    "preempted by the scheduler": (
        pod(running(conditions=[disruption("PreemptionByScheduler")]), **DELETED),
        EndCause.PREEMPTED,
    ),
    "driven away by a taint": (
        pod(running(conditions=[disruption("DeletionByTaintManager")]), **DELETED),
        EndCause.EVICTED,
    ),
    "driven away from a node that went silent": (
        pod(running(conditions=[*SILENT, disruption("DeletionByTaintManager")]), **DELETED),
        EndCause.NODE_LOST,
    ),
    "its node is gone": (
        pod(status("Failed", conditions=[disruption("DeletionByPodGC")]), **DELETED),
        EndCause.NODE_LOST,
    ),
    "disrupted in a way of the future": (
        pod(running(conditions=[disruption("DeletionByComet")]), **DELETED),
        EndCause.EVICTED,
    ),
    "deleted while it ran": (pod(running(), **DELETED), EndCause.DELETED),
    "deleted, and ended by that": (pod(ended(0, "Completed", phase="Succeeded"), **DELETED), EndCause.DELETED),
    "deleted, ended by that, and confirmed by the kubelet, which moves the time of deletion": (
        pod(ended(0, "Completed", phase="Succeeded"), deletionTimestamp=LATER, deletionGracePeriodSeconds=0),
        EndCause.DELETED,
    ),
    "deleted before it had a node": (pod(status("Pending"), **DELETED), EndCause.DELETED),
    "failed before it started, and nobody says why": (pod(status("Failed")), EndCause.START_FAILED),
    "failed while it ran, and nobody says why": (pod({**running(), "phase": "Failed"}), EndCause.UNKNOWN),
}


@pytest.mark.parametrize(("seen", "cause"), CASES.values(), ids=CASES.keys())
def test_the_pod_tells_who_ended_it(seen: dict[str, Any], cause: EndCause) -> None:
    ending = ending_of(seen)

    assert ending is not None
    assert ending.cause is cause


@pytest.mark.parametrize("seen", [running(), status("Pending"), running(conditions=SILENT)])
def test_what_has_not_ended_has_no_ending(seen: dict[str, Any]) -> None:
    assert ending_of(pod(seen)) is None


def test_a_condition_that_is_not_true_disrupts_nobody() -> None:
    untrue = {**disruption("PreemptionByScheduler"), "status": "False"}

    assert ending_of(pod(running(conditions=[untrue]))) is None


def test_the_evidence_is_kept() -> None:
    ending = ending_of(pod(by_kubelet("Evicted", message=STORAGE, conditions=SILENT), **DELETED))

    assert ending is not None
    assert (ending.exit_code, ending.message) == (137, STORAGE)
    assert ending.details == {
        "pod_phase": "Failed",
        "pod_reason": "Evicted",
        "pod_message": STORAGE,
        "container_reason": "Error",
        "started_at": STARTED,
        "finished_at": FINISHED,
        "deletion_at": "2026-11-16T11:52:46Z",
        "deletion_grace_seconds": "1",
        "conditions": "Ready=False ContainersReady=True",
    }


def test_evidence_that_the_model_wrote_is_cut() -> None:
    forged = ended(1, "Error")
    forged["containerStatuses"][0]["state"]["terminated"]["message"] = "x" * 100_000

    ending = ending_of(pod(forged))

    assert ending is not None
    assert len(ending.message) < 2000
    assert len(ending.details["container_message"]) < 2000


def test_a_node_is_silent_when_only_the_pods_readiness_was_taken() -> None:
    assert node_is_silent(pod(running(conditions=SILENT)))
    assert not node_is_silent(pod(running()))
    assert not node_is_silent(pod(ended(1, "Error")))
