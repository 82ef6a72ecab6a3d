"""
Pods becoming ready and going away, on the one-node kind cluster.

The floor for every pool: one Deployment of N pods, which the kubelet starts
all at once, against the same N pods created with a bounded number of them not
yet ready.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from kubernetes import client

from lab.images import reference
from lab.talk import LabError, say
from load import ground
from load.frame import Outcome
from support.kube import RESTRICTED, Namespace, connected

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

LABEL = "bench=pods"
LIMIT_SECONDS = 1800.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--in-flight", type=int, action="append", help="may be repeated (default: 16)")


def measure(options: argparse.Namespace) -> Outcome:
    """Fill and empty the namespace once for each way of filling it."""
    rows: list[list[str]] = []
    figures: dict[str, float] = {}
    with connected(ground.kubeconfig()) as core:
        ways: dict[str, Callable[[Namespace], None]] = {"deployment": partial(_deploy, pods=options.pods)}
        for bound in options.in_flight or [16]:
            ways[f"in_flight_{bound}"] = partial(_create_bounded, pods=options.pods, bound=bound)
        for name, fill in ways.items():
            seconds = _fill_and_empty(core, name, fill, options.pods)
            rows.append([name, *(f"{value:.1f}" for value in seconds.values())])
            figures |= {f"{name}_{point}_s": round(value, 1) for point, value in seconds.items()}
    header = ("way", "first ready s", "half s", "90 % s", "all s", "gone s")
    return Outcome(figures, header, rows, [f"{options.pods} pods"])


def _fill_and_empty(core: Any, name: str, fill: Callable[[Namespace], None], pods: int) -> dict[str, float]:
    namespace = Namespace(f"bench-{name.replace('_', '-')}", core)
    core.create_namespace({"metadata": {"name": namespace.name}})
    say(f"{name}: creating {pods} pods")
    began = time.monotonic()
    fill(namespace)
    ready = _ready_times(namespace, pods, began)
    began = time.monotonic()
    core.delete_namespace(namespace.name)
    while _exists(core, namespace.name):
        time.sleep(0.5)
    points = {"first": 0, "half": pods // 2, "p90": int(pods * 0.9), "all": pods - 1}
    return {point: ready[index] for point, index in points.items()} | {"gone": time.monotonic() - began}


def _spec() -> dict[str, Any]:
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": reference("sandbox"),
                "imagePullPolicy": "Never",
                "command": ["sleep", "infinity"],
                "securityContext": RESTRICTED,
            }
        ],
    }


def _deploy(namespace: Namespace, pods: int) -> None:
    labels = dict([LABEL.split("=")])
    body = {
        "metadata": {"name": "bench"},
        "spec": {
            "replicas": pods,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _spec()},
        },
    }
    apps: Any = client.AppsV1Api(namespace.core.api_client)
    apps.create_namespaced_deployment(namespace.name, body)


def _create_bounded(namespace: Namespace, pods: int, bound: int) -> None:
    created = 0
    while created < pods:
        room = bound - (created - _ready(namespace))
        for _ in range(min(room, pods - created)):
            body = {"metadata": {"name": f"pod-{created}", "labels": dict([LABEL.split("=")])}, "spec": _spec()}
            namespace.core.create_namespaced_pod(namespace.name, body)
            created += 1
        time.sleep(0.2)


def _ready(namespace: Namespace) -> int:
    return len(_ready_stamps(namespace))


def _ready_stamps(namespace: Namespace) -> list[float]:
    """Return when each ready pod became so, by the API server's clock, which is this machine's."""
    listed = namespace.core.list_namespaced_pod(namespace.name, label_selector=LABEL, resource_version="0")
    return sorted(
        condition.last_transition_time.timestamp()
        for pod in listed.items
        for condition in pod.status.conditions or []
        if condition.type == "Ready" and condition.status == "True"
    )


def _ready_times(namespace: Namespace, pods: int, began: float) -> list[float]:
    offset = time.time() - time.monotonic()
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(stamps := _ready_stamps(namespace)) < pods:
        if time.monotonic() > deadline:
            raise LabError(f"only {len(stamps)} of {pods} pods became ready")
        time.sleep(1)
    return [max(0.0, stamp - offset - began) for stamp in stamps]


def _exists(core: Any, namespace: str) -> bool:
    return any(item.metadata.name == namespace for item in core.list_namespace().items)
