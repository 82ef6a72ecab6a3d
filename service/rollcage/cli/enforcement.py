"""
Find out by trying whether a cluster enforces NetworkPolicies.

Policies are accepted by every cluster, and mean nothing where no engine reads
them. So three pods try to connect: one that nothing forbids (else the others
prove nothing), one that may not reach out, one whose goal may not be reached.
All of it happens in a namespace of its own, which is removed afterwards.
"""

from __future__ import annotations

import asyncio
import uuid
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.errors import RollcageError
from rollcage.sandboxes.source import SandboxRejected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.sandboxes.kubernetes.api import Api

    Json = dict[str, Any]

_PORT: Final = 8080
_LOOK_AGAIN: Final = 0.5
# Pods have to be scheduled and started, perhaps their image fetched.
_PATIENCE: Final = timedelta(minutes=3)

# Serves nothing but connections.
_LISTEN: Final = f"""
import socket
server = socket.create_server(("", {_PORT}))
while True:
    server.accept()[0].close()
"""
# Engines need a moment for a new pod: whoever is stopped after a while is told apart from who is stopped at once.
_ASK: Final = f"""
import socket, sys, time
reached = []
for _ in range(int(sys.argv[2])):
    try:
        socket.create_connection((sys.argv[1], {_PORT}), 3).close()
        reached.append(True)
    except OSError:
        reached.append(False)
    time.sleep(1)
print(reached)
sys.exit(10 if all(reached) else 12 if any(reached) else 11)
"""
_TIMES: Final = 6


class Enforced(StrEnum):
    """What became of a connection that a policy forbids."""

    YES = "yes"
    """It was stopped from the first instant."""
    LATE = "late"
    """It was stopped after a while: a sandbox could call somebody in its first seconds."""
    NO = "no"
    """It went through."""


class CannotTell(RollcageError):
    """Whether policies are enforced could not be tried; nothing is known about it."""

    code = "cannot_tell"


_MEANING: Final = {10: Enforced.NO, 11: Enforced.YES, 12: Enforced.LATE}


@dataclass(frozen=True, slots=True)
class Enforcement:
    """What was seen, each way."""

    egress: Enforced
    ingress: Enforced

    @property
    def whole(self) -> bool:
        """Whether policies hold both ways, from the first instant."""
        return self.egress is Enforced.YES and self.ingress is Enforced.YES


async def try_enforcement(api: Api, *, image: str, patience: timedelta = _PATIENCE) -> Enforcement:
    """
    Try it, in about half a minute; raise CannotTell if the trial itself did not work.

    *image* needs nothing but a ``python3``: the service's own will do.
    """
    try:
        async with asyncio.timeout(patience.total_seconds()), _namespace(api) as namespace:
            return await _trial(api, namespace, image)
    except TimeoutError:
        raise CannotTell(f"the trial took longer than {patience}: are the pods of {image} able to start?") from None
    except SandboxRejected as error:
        raise CannotTell(f"the trial was refused: {error}") from error


async def _trial(api: Api, namespace: str, image: str) -> Enforcement:
    base = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    for name, direction in (("no-way-out", "Egress"), ("no-way-in", "Ingress")):
        await api.request("POST", base, body=_policy(name, direction))
    pods = f"/api/v1/namespaces/{namespace}/pods"
    for role in ("open", "no-way-in"):
        await _created(api, pods, _pod(f"listener-{role}", role, image, _LISTEN))
    opened, closed = [await _address(api, f"{pods}/listener-{role}") for role in ("open", "no-way-in")]
    # The way that nothing forbids is tried first and once it works: from then on a failure means something.
    if await _asked(api, pods, _pod("free-to-open", "free", image, _ASK, opened, "1")) is not Enforced.NO:
        raise CannotTell("a connection that no policy forbids failed")
    egress, ingress = await asyncio.gather(
        _asked(api, pods, _pod("shut-in-to-open", "no-way-out", image, _ASK, opened, str(_TIMES))),
        _asked(api, pods, _pod("free-to-closed", "free", image, _ASK, closed, str(_TIMES))),
    )
    return Enforcement(egress, ingress)


@asynccontextmanager
async def _namespace(api: Api) -> AsyncIterator[str]:
    name = f"rollcage-trial-{uuid.uuid4().hex[:8]}"
    labels = {"app.kubernetes.io/part-of": "rollcage", "pod-security.kubernetes.io/enforce": "restricted"}
    await api.request("POST", "/api/v1/namespaces", body={"metadata": {"name": name, "labels": labels}})
    try:
        yield name
    finally:
        await api.request("DELETE", f"/api/v1/namespaces/{name}")


async def _created(api: Api, pods: str, pod: Json) -> None:
    while True:
        try:
            await api.request("POST", pods, body=pod)
        except SandboxRejected as error:
            # A namespace gets its service account a moment after it was made; until then pods are refused.
            if "serviceaccount" not in str(error):
                raise
            await asyncio.sleep(_LOOK_AGAIN)
        else:
            return


async def _asked(api: Api, pods: str, pod: Json) -> Enforced:
    await _created(api, pods, pod)
    name = pod["metadata"]["name"]
    while True:
        status = (await api.request("GET", f"{pods}/{name}"))["status"]
        for one in status.get("containerStatuses", ()):
            if ended := one["state"].get("terminated"):
                if ended["exitCode"] not in _MEANING:
                    raise CannotTell(f"{name} ended with {ended['exitCode']}: {ended.get('reason', '')}")
                return _MEANING[ended["exitCode"]]
        await asyncio.sleep(_LOOK_AGAIN)


async def _address(api: Api, path: str) -> str:
    while True:
        status = (await api.request("GET", path))["status"]
        if status.get("phase") in {"Failed", "Succeeded"}:
            raise CannotTell(f"{path} ended before anybody asked it")
        if any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", ())):
            address: str = status["podIP"]
            return address
        await asyncio.sleep(_LOOK_AGAIN)


def _policy(role: str, direction: str) -> Json:
    return {
        "metadata": {"name": role},
        "spec": {"podSelector": {"matchLabels": {"role": role}}, "policyTypes": [direction]},
    }


def _pod(name: str, role: str, image: str, program: str, *arguments: str) -> Json:
    container: Json = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", program, *arguments],
        "resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "10m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if program == _LISTEN:
        container["readinessProbe"] = {"tcpSocket": {"port": _PORT}, "periodSeconds": 1}
    return {
        "metadata": {"name": name, "labels": {"role": role}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 10001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }
