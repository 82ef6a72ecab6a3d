from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rollcage.sandboxes.kubernetes.reading import sandbox_of
from rollcage.sandboxes.source import Hold, HoldCause, Phase, Sandbox
from support.pods import IMAGE_ID, ended, pod, running, status, waiting

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient memory.",
}


def test_a_running_pod_is_a_sandbox_with_an_address() -> None:
    seen = pod(running())

    assert sandbox_of(seen) == Sandbox(
        name="sbx-1",
        uid="uid-1",
        environment="small",
        template="413f6497cdf728a9",
        phase=Phase.RUNNING,
        created=datetime(2026, 11, 16, 11, 52, 37, tzinfo=UTC),
        address="http://10.245.1.10:8750",
        node="worker-1",
        image=IMAGE_ID,
        labels=seen["metadata"]["labels"],
    )


def test_an_address_of_version_six_is_bracketed() -> None:
    assert sandbox_of(pod(running(podIP="fd00::7"))).address == "http://[fd00::7]:8750"


def test_a_sandbox_runs_only_once_it_can_be_reached() -> None:
    seen = running()
    del seen["podIP"]

    assert sandbox_of(pod(seen)).phase is Phase.STARTING


def test_a_sandbox_that_ended_has_no_address() -> None:
    sandbox = sandbox_of(pod(ended(137, "OOMKilled")))

    assert (sandbox.phase, sandbox.address) == (Phase.ENDED, None)


def test_a_pod_that_the_scheduler_has_not_seen_yet_is_starting() -> None:
    assert sandbox_of({"metadata": pod({})["metadata"]}).phase is Phase.STARTING


HOLDS: dict[str, tuple[dict[str, Any], Hold | None]] = {
    "the image cannot be pulled": (
        waiting("ErrImagePull", "not found"),
        Hold(HoldCause.IMAGE_PULL, "not found"),
    ),
    "the image could not be pulled, and is tried again later": (
        waiting("ImagePullBackOff"),
        Hold(HoldCause.IMAGE_PULL, "ImagePullBackOff"),
    ),
    "the image is not on the node and may not be pulled": (
        waiting("ErrImageNeverPull"),
        Hold(HoldCause.IMAGE_PULL, "ErrImageNeverPull"),
    ),
    "the image has no possible name": (
        waiting("InvalidImageName"),
        Hold(HoldCause.IMAGE_PULL, "InvalidImageName"),
    ),
    "the container cannot be configured": (
        waiting("CreateContainerConfigError", "secret not found"),
        Hold(HoldCause.START_ERROR, "secret not found"),
    ),
    "the installer's image cannot be pulled": (
        status(
            "Pending",
            state={"waiting": {"reason": "PodInitializing"}},
            initContainerStatuses=[{"name": "toolserver", "state": {"waiting": {"reason": "ErrImagePull"}}}],
        ),
        Hold(HoldCause.IMAGE_PULL, "ErrImagePull"),
    ),
    "no node has room": (
        status("Pending", conditions=[UNSCHEDULABLE]),
        Hold(HoldCause.UNSCHEDULABLE, UNSCHEDULABLE["message"]),
    ),
    "nothing is wrong, it is on its way": (waiting("ContainerCreating"), None),
}


@pytest.mark.parametrize(("seen", "hold"), HOLDS.values(), ids=HOLDS.keys())
def test_a_starting_pod_tells_what_it_waits_for(seen: dict[str, Any], hold: Hold | None) -> None:
    sandbox = sandbox_of(pod(seen))

    assert (sandbox.phase, sandbox.hold) == (Phase.STARTING, hold)
