"""
Environments for tests: a small one that fits on any machine, and a table of mistakes.

The table is put before both judges, the model and the API server; they must
agree.
"""

from __future__ import annotations

from typing import Any

from lab.images import reference
from rollcage.core.environment import API_VERSION, KIND, Environment

# Small enough for fifty on a two-core machine.
SMALL: dict[str, Any] = {
    "image": reference("sandbox"),
    "imagePullPolicy": "Never",
    "resources": {
        "requests": {"cpu": "10m", "memory": "32Mi", "ephemeral-storage": "16Mi"},
        "limits": {"cpu": "1", "memory": "128Mi", "ephemeral-storage": "64Mi"},
    },
    "workspace": {"size": "32Mi"},
    "budgets": {"lifetimeSeconds": 3600, "wallSeconds": 1800},
}


def spec(**changes: Any) -> dict[str, Any]:
    """Return the small spec with some fields replaced."""
    return {**SMALL, **changes}


def environment(name: str = "small", **changes: Any) -> Environment:
    return Environment.from_resource(resource(name, **changes))


def resource(name: str = "small", **changes: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec(**changes)}


def _tool(**changes: Any) -> dict[str, Any]:
    return {"tools": {"custom": [{"name": "lint", "command": ["/opt/lint"], **changes}]}}


def _volume(**changes: Any) -> dict[str, Any]:
    return {"pod": {"volumes": [{"name": "data", "mountPath": "/data", "configMap": "fixtures", **changes}]}}


_GRADER = {"kind": "function", "function": "graders:score"}

# What is wrong, in words: the changed fields, and where both judges must see it.
MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "no image": ({"image": None}, "spec.image"),
    "an image with a space": ({"image": "a b"}, "spec.image"),
    "a field that nobody reads in the pool": ({"pool": {"wram": 1}}, "wram"),
    "a text for a number": ({"pool": {"warm": "5"}}, "spec.pool.warm"),
    "a fraction for a number": ({"pool": {"warm": 1.5}}, "spec.pool.warm"),
    "a negative pool": ({"pool": {"warm": -1}}, "spec.pool.warm"),
    "a pool above the bound": ({"pool": {"warm": 5, "maxPods": 4}}, "warm must not be above maxPods"),
    "an unknown delivery": ({"toolserver": {"delivery": "magic"}}, "spec.toolserver.delivery"),
    "egress that is not there yet": ({"egress": "all"}, "spec.egress"),
    "a relative workspace": ({"workspace": {"path": "work"}}, "spec.workspace.path"),
    "a workspace that climbs": ({"workspace": {"path": "/a/../b"}}, "a path has no . and no .."),
    "a workspace in the kernel's place": ({"workspace": {"path": "/proc/x"}}, "not free for mounts"),
    "a workspace over the toolserver": ({"workspace": {"path": "/rollcage"}}, "not free for mounts"),
    "no memory at all": ({"resources": {"limits": {"memory": "0"}}}, "spec.resources.limits.memory"),
    "half a byte of memory": ({"resources": {"limits": {"memory": "512m"}}}, "spec.resources.limits.memory"),
    "no CPU time at all": ({"resources": {"limits": {"cpu": 0}}}, "spec.resources.limits.cpu"),
    "CPU time that is no quantity": ({"resources": {"requests": {"cpu": "half"}}}, "spec.resources.requests.cpu"),
    "more memory asked for than allowed": (
        {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}},
        "the request of memory is above its limit",
    ),
    "a workspace larger than the disk": (
        {"workspace": {"size": "3Gi"}, "resources": {}},
        "workspace.size must not be above resources.limits.ephemeral-storage",
    ),
    "a life shorter than a rollout": (
        {"budgets": {"wallSeconds": 7200, "lifetimeSeconds": 7200}},
        "lifetimeSeconds must be above wallSeconds",
    ),
    "an unknown built-in tool": ({"tools": {"builtin": ["shell", "browser"]}}, "spec.tools.builtin[1]"),
    "a custom tool without a command": (_tool(command=[]), "spec.tools.custom[0].command"),
    "a custom tool with a bad name": (_tool(name="a b"), "spec.tools.custom[0].name"),
    "a custom tool named like a built-in one": (_tool(name="shell"), "built-in tool"),
    "a custom tool slower than any call may be": (_tool(timeoutSeconds=541), "is above limits.maxTimeoutSeconds"),
    "an empty shell": ({"shell": []}, "spec.shell"),
    "a variable with = in its name": ({"env": {"A=B": "c"}}, "="),
    "a variable of ours": ({"env": {"ROLLCAGE_KEYS": "x"}}, "are taken"),
    "a variable that is a number": ({"env": {"DEBUG": 1}}, "spec.env.DEBUG"),
    "a volume without content": (_volume(configMap=None), "exactly one of configMap, secret, claim and emptyDir"),
    "a volume with two contents": (_volume(secret="s"), "exactly one of configMap, secret, claim and emptyDir"),  # noqa: S106
    "a volume named like one of ours": (_volume(name="workspace"), "own volumes"),
    "a volume over the workspace": (_volume(mountPath="/workspace"), "mounted over the workspace"),
    "root": ({"pod": {"runAsUser": 0}}, "spec.pod.runAsUser"),
    "a label of ours": ({"pod": {"labels": {"rollcage.dev/environment": "x"}}}, "are taken"),
    "a label that is none": ({"pod": {"labels": {"team": "a b"}}}, "spec.pod.labels.team"),
    "grading without a grader": ({"grading": {"artifacts": ["/workspace"]}}, "spec.grading.grader"),
    "a range of scores upside down": (
        {"grading": {"grader": _GRADER, "range": {"lowest": 1, "highest": 0}}},
        "lowest must be below highest",
    ),
}
