"""
What stands beside a release on the test cluster: the Prometheus operator's definitions, and a Redis of somebody else's.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml
from kubernetes import client

from lab import parts
from lab.images import reference
from support.certificates import certificates_for
from support.kube import RESTRICTED, Namespace, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.kind import Cluster

OPERATOR = "github.com/prometheus-operator/prometheus-operator"
WATCHED = ("servicemonitors", "podmonitors", "prometheusrules")
ELSEWHERE = "rollcage-test-elsewhere"
PORT = 6380


@contextmanager
def operators_definitions(cluster: Cluster, core: Any) -> Iterator[None]:
    """Teach the cluster what monitors and rules are, by the operator's own definitions."""
    directory = parts.module_files("prometheus-operator", OPERATOR) / "example" / "prometheus-operator-crd"
    texts = [(directory / f"monitoring.coreos.com_{one}.yaml").read_text() for one in WATCHED]
    cluster.apply("\n---\n".join(texts))
    api: Any = client.ApiextensionsV1Api(core.api_client)
    names = {yaml.safe_load(text)["metadata"]["name"] for text in texts}

    def established() -> bool:
        found = [one for one in api.list_custom_resource_definition().items if one.metadata.name in names]
        return len(found) == len(names) and all(
            any(c.type == "Established" and c.status == "True" for c in one.status.conditions or ()) for one in found
        )

    wait_for("the operator's definitions to be established", established)
    try:
        yield
    finally:
        for name in names:
            api.delete_custom_resource_definition(name)


@dataclass(frozen=True)
class Redis:
    """A server that belongs to no release."""

    url: str
    authority: bytes
    """The certificate by which it can be trusted."""


@contextmanager
def redis_elsewhere(core: Any) -> Iterator[Redis]:
    """Run a Redis with TLS and a password as a plain pod of another namespace."""
    host, password = f"redis.{ELSEWHERE}.svc", secrets.token_hex(16)
    shown = certificates_for(host)
    core.create_namespace({"metadata": {"name": ELSEWHERE}})
    files = {"tls.crt": shown.certificate.decode(), "tls.key": shown.key.decode(), "password": password}
    core.create_namespaced_secret(ELSEWHERE, {"metadata": {"name": "redis"}, "stringData": files})
    core.create_namespaced_service(
        ELSEWHERE,
        {"metadata": {"name": "redis"}, "spec": {"selector": {"app": "redis"}, "ports": [{"port": PORT}]}},
    )
    # Until it exists every pod is refused.
    wait_for("the namespace's service account", lambda: core.list_namespaced_service_account(ELSEWHERE).items)
    core.create_namespaced_pod(ELSEWHERE, _pod())
    Namespace(ELSEWHERE, core).ready("redis")
    try:
        yield Redis(f"rediss://:{password}@{host}:{PORT}/0", shown.authority)
    finally:
        core.delete_namespace(ELSEWHERE)


def _pod() -> dict[str, Any]:
    key = {"secretKeyRef": {"name": "redis", "key": "password"}}
    arguments = (
        f"--port 0 --tls-port {PORT} --tls-cert-file /tls/tls.crt --tls-key-file /tls/tls.key --tls-auth-clients no"
        " --maxmemory-policy noeviction --requirepass $(PASSWORD)"
    )
    container = {
        "name": "redis",
        "image": reference("redis"),
        "imagePullPolicy": "Never",
        "args": [*arguments.split(), "--save", ""],
        "env": [{"name": "PASSWORD", "valueFrom": key}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": "tls", "mountPath": "/tls", "readOnly": True}],
    }
    return {
        "metadata": {"name": "redis", "labels": {"app": "redis"}},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "tls", "secret": {"secretName": "redis"}}],
        },
    }
