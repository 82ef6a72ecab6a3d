"""
One kind cluster: made, found, loaded with images, removed.

Where kind's published node image can be had and run, this is stock kind;
elsewhere it uses the image of ``node_image`` and, where --privileged is
refused, a stand-in for the docker client.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab import node_image, parts
from lab.builder import Builder
from lab.machine import missing_capabilities
from lab.places import ROOT, cache, scratch
from lab.talk import LabError, run, say, step, succeeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.engine import Engine

CONFIGS = ROOT / "manifests" / "kind"
SHAPES = ("one-node", "three-nodes")
STANDIN = Path(__file__).parent / "standin"
# Marks the routes to pods that we add to the host, so that only those are removed.
ROUTE_PROTOCOL = "201"
# How often it is tried to remove a cluster.
DELETIONS = 3
READY_WAIT = "180s"


@dataclass(frozen=True)
class Cluster:
    """A cluster by its shape; there is at most one of each."""

    shape: str
    engine: Engine

    @property
    def name(self) -> str:
        """The name by which kind knows it."""
        return f"rollcage-{self.shape}"

    @property
    def kubeconfig(self) -> Path:
        """Where its credentials are."""
        return cache("clusters") / f"{self.name}.kubeconfig"

    def nodes(self) -> list[str]:
        """Return the names of its node containers."""
        return self.engine.docker(
            "ps", "-a", "--format={{.Names}}", f"--filter=label=io.x-k8s.kind.cluster={self.name}"
        ).split()

    def node_facts(self) -> list[dict[str, Any]]:
        """Ask the API server for its nodes; empty when it does not answer."""
        if not succeeds(self._kubectl("get", "--raw=/readyz"), env=self.engine.env):
            return []
        answer = run(self._kubectl("get", "nodes", "-ojson"), env=self.engine.env)
        items: list[dict[str, Any]] = json.loads(answer)["items"]
        return items

    def apply(self, manifest: str) -> None:
        """Apply a manifest."""
        run(self._kubectl("apply", "-f", "-"), env=self.engine.env, stdin=manifest)

    def delete(self, manifest: str) -> None:
        """Remove what a manifest has made, as far as it is there."""
        run(self._kubectl("delete", "--ignore-not-found", "-f", "-"), env=self.engine.env, stdin=manifest)

    def _kubectl(self, *args: str) -> list[str]:
        """Return the command line of the control plane's own kubectl: the host may have none."""
        control_plane = f"{self.name}-control-plane"
        return ["docker", "exec", "-i", control_plane, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", *args]

    def healthy(self) -> bool:
        """Tell whether every node container runs and its node is ready."""
        facts = self.node_facts()
        return bool(facts) and len(facts) == len(self.nodes()) and all(is_ready(node) for node in facts)


def is_ready(node: dict[str, Any]) -> bool:
    """Tell whether a node's own Ready condition is true."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


def up(cluster: Cluster, *, image: str, gvisor: bool) -> None:
    """Make the cluster unless it is there and well."""
    if cluster.nodes():
        present = cluster.engine.docker("inspect", "--format={{.Config.Image}}", cluster.nodes()[0]).strip()
        if present != image:
            raise LabError(f"{cluster.name} is up with another node image", f"scripts/cluster down {cluster.shape}")
        if cluster.healthy():
            say(f"{cluster.name} is up already")
        else:
            say(f"{cluster.name} is there but not healthy: making it anew")
            down(cluster)
    if not cluster.nodes():
        with step(f"creating {cluster.name}"):
            _kind(
                cluster.engine,
                [
                    *("create", "cluster", f"--name={cluster.name}", f"--image={image}", f"--wait={READY_WAIT}"),
                    *(f"--config={CONFIGS / cluster.shape}.yaml", f"--kubeconfig={cluster.kubeconfig}"),
                ],
            )
    if gvisor:
        cluster.apply((CONFIGS / "gvisor.yaml").read_text())
    route_to_pods(cluster)


def down(cluster: Cluster) -> None:
    """Remove the cluster and everything that was made for it."""
    for node in cluster.nodes():
        address = _address(cluster, node)
        if address and os.geteuid() == 0:
            succeeds(["ip", "route", "flush", "proto", ROUTE_PROTOCOL, "via", address])
    if cluster.nodes():
        with step(f"deleting {cluster.name}"):
            _delete(cluster)
    cluster.kubeconfig.unlink(missing_ok=True)


def _delete(cluster: Cluster) -> None:
    for attempts_left in reversed(range(DELETIONS)):
        try:
            _kind(
                cluster.engine,
                ["delete", "cluster", f"--name={cluster.name}", f"--kubeconfig={cluster.kubeconfig}"],
            )
        except LabError:
            # A node with hundreds of pods takes longer to die than the engine waits for it.
            if attempts_left == 0:
                raise
        else:
            return


def load(cluster: Cluster, images: Sequence[str]) -> None:
    """Put images of the engine onto every node."""
    if not cluster.nodes():
        raise LabError(f"{cluster.name} is not up", f"scripts/cluster up {cluster.shape}")
    for image in images:
        with step(f"loading {image} onto {cluster.name}"), scratch() as tmp:
            archive = tmp / "image.tar"
            _holder(cluster, image).save(image, archive)
            _kind(cluster.engine, ["load", "image-archive", f"--name={cluster.name}", str(archive)])


def _holder(cluster: Cluster, image: str) -> Builder:
    """Return the builder whose store has an image."""
    for make in (Builder("docker", cluster.engine.env), Builder("podman"), Builder("buildah")):
        if make.has(image):
            return make
    raise LabError(f"nobody here has built {image}", "scripts/images build")


def choose_image(engine: Engine, *, source: str, gvisor: bool, install: bool) -> str:
    """Return the node image to use: kind's own where possible, else ours."""
    if source != "built" and not gvisor and not missing_capabilities():
        defaults = parts.module_files("kind", "sigs.k8s.io/kind") / "pkg/apis/config/defaults/image.go"
        found = re.search(r'Image = "(.*)"', defaults.read_text())
        if found and engine.can_pull(found[1]):
            return found[1]
    if source == "published":
        raise LabError("the published node image cannot be pulled or run here", "--node-image=built makes one")
    return node_image.ensure(engine, gvisor=gvisor, install=install)


def _kind(engine: Engine, args: list[str]) -> None:
    env = engine.env | {"KIND_EXPERIMENTAL_PROVIDER": "docker"}
    missing = missing_capabilities()
    if missing:
        env |= {
            "PATH": f"{STANDIN}:{env['PATH']}",
            "ROLLCAGE_DOCKER": shutil.which("docker") or "docker",
            "ROLLCAGE_MISSING_CAPS": " ".join(missing),
        }
    run([parts.build(parts.KIND) / "kind", *args], env=env, log=cache("logs") / f"kind-{args[0]}.log")


def route_to_pods(cluster: Cluster) -> None:
    """Let programs on this machine reach pods by their addresses, through the node that runs them."""
    if os.geteuid() != 0:
        say("not root: pods are reachable from here by port-forward only")
        return
    for node in cluster.node_facts():
        address = _address(cluster, node["metadata"]["name"])
        run(["ip", "route", "replace", node["spec"]["podCIDR"], "via", address, "proto", ROUTE_PROTOCOL])


def _address(cluster: Cluster, node: str) -> str:
    template = "--format={{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return cluster.engine.docker("inspect", template, node).strip()
