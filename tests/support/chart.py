"""
The chart as Helm renders it without a cluster, and what its policies mean.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import yaml

from lab import parts
from lab.manifests import template

Json = dict[str, Any]

RELEASE = "rollcage"
NAMESPACE = "rollcage"
SANDBOXES = "rollcage-sandboxes"


@dataclass(frozen=True)
class Chart:
    """What was rendered."""

    objects: tuple[Json, ...]

    def of(self, kind: str) -> list[Json]:
        return [one for one in self.objects if one["kind"] == kind]

    def get(self, kind: str, name: str) -> Json:
        (found,) = (one for one in self.of(kind) if one["metadata"]["name"] == name)
        return found

    def pods(self) -> dict[str, Json]:
        """Return the spec of every pod that the chart makes, by the name of its owner."""
        specs = {}
        for one in self.objects:
            if one["kind"] in {"Deployment", "StatefulSet", "Job"}:
                specs[one["metadata"]["name"]] = one["spec"]["template"]["spec"]
            elif one["kind"] == "Pod":
                specs[one["metadata"]["name"]] = one["spec"]
        return specs


@lru_cache
def rendered(**settings: str) -> Chart:
    """Render the chart with some values, each a dotted name and JSON; ``__`` stands for the dot."""
    options = [f"--set-json={name.replace('__', '.')}={value}" for name, value in settings.items()]
    text = template(*options, namespace=NAMESPACE, release=RELEASE)
    return Chart(tuple(one for one in yaml.safe_load_all(text) if one))


@dataclass(frozen=True)
class Peer:
    """A pod, or somebody outside when it has no namespace."""

    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    ip: str = "10.1.2.3"

    def told(self) -> Json:
        of_namespace = {"kubernetes.io/metadata.name": self.namespace}
        return {"namespace": self.namespace, "namespaceLabels": of_namespace, "labels": self.labels, "ip": self.ip}


@dataclass(frozen=True)
class Traffic:
    """Somebody who wants to reach somebody."""

    source: Peer
    goal: Peer
    port: int
    protocol: str = "TCP"

    def told(self) -> Json:
        return {
            "from": self.source.told(),
            "to": self.goal.told(),
            "port": self.port,
            "protocol": self.protocol,
        }


def allowed(policies: list[Json], traffic: list[Traffic]) -> list[bool]:
    """Tell of each whether the policies allow it."""
    question = json.dumps({"policies": policies, "questions": [one.told() for one in traffic]})
    program = parts.build(parts.POLICIES) / "policies"
    ran = subprocess.run([program], input=question, capture_output=True, text=True, check=True, timeout=60)
    answers: list[bool] = json.loads(ran.stdout)
    return answers
