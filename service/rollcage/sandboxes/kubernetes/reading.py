"""
Read a sandbox from its pod.

Pure, over the pod as the API server's JSON has it. How it ended is told by
``endings``.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rollcage.sandboxes.kubernetes import names
from rollcage.sandboxes.kubernetes.endings import condition, container_state, ending_of, node_is_silent
from rollcage.sandboxes.source import Hold, HoldCause, Phase, Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    Json = Mapping[str, Any]

# Reasons of a waiting container, as the kubelet spells them. One that is not here, such as
# ContainerCreating, is on its way; whoever waits for it has a deadline.
_HOLDS: Final = {
    "ErrImagePull": HoldCause.IMAGE_PULL,
    "ImagePullBackOff": HoldCause.IMAGE_PULL,
    "ErrImageNeverPull": HoldCause.IMAGE_PULL,
    "InvalidImageName": HoldCause.IMAGE_PULL,
    "ImageInspectError": HoldCause.IMAGE_PULL,
    "RegistryUnavailable": HoldCause.IMAGE_PULL,
    "SignatureValidationFailed": HoldCause.IMAGE_PULL,
    "CreateContainerConfigError": HoldCause.START_ERROR,
    "CreateContainerError": HoldCause.START_ERROR,
    "RunContainerError": HoldCause.START_ERROR,
    "PreCreateHookError": HoldCause.START_ERROR,
    "PostStartHookError": HoldCause.START_ERROR,
    "CrashLoopBackOff": HoldCause.START_ERROR,
}


def sandbox_of(pod: Json) -> Sandbox:
    """Return the sandbox that a pod is, as far as the pod tells."""
    metadata = pod["metadata"]
    labels: Mapping[str, str] = metadata.get("labels", {})
    ending = ending_of(pod)
    phase = _phase(pod) if ending is None else Phase.ENDED
    return Sandbox(
        name=metadata["name"],
        uid=metadata["uid"],
        environment=labels.get(names.ENVIRONMENT_LABEL, ""),
        template=labels.get(names.TEMPLATE_LABEL, ""),
        phase=phase,
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        address=_address(pod) if phase is Phase.RUNNING else None,
        node=pod.get("spec", {}).get("nodeName"),
        image=_image(pod),
        labels=dict(labels),
        hold=_hold(pod) if phase is Phase.STARTING else None,
        ending=ending,
        node_silent=node_is_silent(pod),
    )


def _phase(pod: Json) -> Phase:
    running = container_state(pod, "running") is not None and pod.get("status", {}).get("podIP")
    return Phase.RUNNING if running else Phase.STARTING


def _address(pod: Json) -> str:
    ip: str = pod["status"]["podIP"]
    return f"http://[{ip}]:{names.PORT}" if ":" in ip else f"http://{ip}:{names.PORT}"


def _image(pod: Json) -> str | None:
    """Return the digest that runs, or what was asked for until that is known."""
    for container in pod.get("status", {}).get("containerStatuses", ()):
        if container["name"] == names.CONTAINER:
            return container.get("imageID") or container.get("image") or None
    return None


def _hold(pod: Json) -> Hold | None:
    for waiting in _waiting(pod):
        cause = _HOLDS.get(waiting.get("reason", ""))
        if cause:
            return Hold(cause, waiting.get("message") or waiting["reason"])
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False":
        return Hold(HoldCause.UNSCHEDULABLE, scheduled.get("message") or scheduled.get("reason", ""))
    return None


def _waiting(pod: Json) -> Iterator[Json]:
    status = pod.get("status", {})
    for container in (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())):
        waiting = container.get("state", {}).get("waiting")
        if waiting:
            yield waiting
