"""The manifests for clusters without Helm, applied as docs/install.md tells."""

from __future__ import annotations

import base64
import json
import secrets
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from lab.manifests import MANIFESTS
from rollcage.gateway.tenants import token_hash
from rollcage.wire.keyring import new_keyring
from support.environments import resource
from support.kube import Namespace, wait_for
from support.volumes import node_volume

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.kind import Cluster

NAMESPACE, SANDBOXES = "rollcage", "rollcage-sandboxes"
TOKEN = f"plain-{secrets.token_hex(32)}"
# From the gateway's own pod: nobody outside was named who may call it.
CALL = f"""
import json, urllib.error, urllib.request
body = {{"name": "shell", "arguments": {{"command": "echo hello"}}}}
request = urllib.request.Request(
    "http://127.0.0.1:8080/agent-rft/environments/plain/tools",
    json.dumps(body).encode(),
    {{"Authorization": "Bearer {TOKEN}", "Content-Type": "application/json"}},
)
try:
    print(json.load(urllib.request.urlopen(request, timeout=60))["output"])
except urllib.error.HTTPError as error:
    print(error.read())
"""
TEXT = (MANIFESTS / "rollcage.yaml").read_text()


@pytest.fixture(scope="module")
def gateways(cluster: Cluster, core: Any) -> Iterator[list[str]]:
    """The gateways' pods, once all that was applied is ready."""
    tenants = {"tenants": [{"name": "acme", "tokens": [token_hash(TOKEN)]}]}
    made = {
        "rollcage-redis": {"password": secrets.token_hex(24)},
        "rollcage-keyring": {"keyring.json": new_keyring()},
        "rollcage-tenants": {"tenants.yaml": yaml.safe_dump(tenants)},
    }
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    with node_volume(cluster, core, "rollcage-plain", storage_class="standard", size="8Gi"):
        try:
            cluster.apply((MANIFESTS / "crd" / "environments.rollcage.dev.yaml").read_text())
            for name, data in made.items():
                coded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
                core.create_namespaced_secret(NAMESPACE, {"metadata": {"name": name}, "data": coded})
            cluster.apply(TEXT)
            # As JSON, which is YAML too.
            cluster.apply(json.dumps({**resource("plain", pool={"warm": 1}), **_in(SANDBOXES, "plain")}))
            yield wait_for("the gateways to be ready", lambda: _ready(core))
        finally:
            cluster.delete(TEXT)
            core.delete_namespace(NAMESPACE)


def test_a_call_is_answered(core: Any, gateways: list[str]) -> None:
    namespace = Namespace(NAMESPACE, core)

    # Until the gateway has heard of the environment, or its first sandbox is there, it says so.
    wait_for("an answer", lambda: "hello" in namespace.exec(gateways[0], "python3", "-c", CALL))


def _in(namespace: str, name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace}}


def _ready(core: Any) -> list[str]:
    pods = core.list_namespaced_pod(NAMESPACE, label_selector="app.kubernetes.io/component=gateway").items
    ready = [one for one in pods if all(c.ready for c in one.status.container_statuses or [])]
    return [one.metadata.name for one in ready if one.status.container_statuses] if len(ready) == 2 else []
