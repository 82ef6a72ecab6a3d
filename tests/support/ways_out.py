"""
The ways out of a pod that an attacker would try, and a program that tries them all.

Somebody whom no policy holds tries them first: a way that nobody gets through
would prove nothing about those who are stopped.
"""

from __future__ import annotations

import json
import shlex
import socketserver
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lab.images import reference
from support.installed import NAME, NAMESPACE, Installed
from support.kube import Namespace, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

# Each a protocol, an address and a port.
Way = tuple[str, str, int]

FREE = "free-of-policies"
METADATA = "169.254.169.254"
# Enough for somebody free on a busy machine, who stops trying once every way was found.
PATIENCE_SECONDS = 120

# Tries every way again and again, and prints those where somebody answered. What it sends by UDP is a question for a
# name that carries a word of the sender's.
PROGRAM = """
import json, socket, sys, threading, time
ways, seconds, word = json.loads(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
end, reached = time.monotonic() + seconds, set()
name = b"".join(bytes([len(one)]) + one for one in (word.encode(), b"example", b""))
QUESTION = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00" + name + b"\\x00\\x01\\x00\\x01"
ECHO = b"\\x08\\x00\\xf7\\xff\\x00\\x00\\x00\\x00"
def attempt(protocol, host, port):
    if protocol == "tcp":
        return socket.create_connection((host, port), 1).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1 if protocol == "icmp" else 0) as asking:
        asking.settimeout(1)
        asking.sendto(ECHO if protocol == "icmp" else QUESTION, (host, port))
        asking.recv(512)
def insist(way, goal):
    while way not in reached and time.monotonic() < end:
        try:
            attempt(*goal)
            reached.add(way)
        except OSError:
            time.sleep(0.02)
threads = [threading.Thread(target=insist, args=one) for one in ways.items()]
[one.start() for one in threads]
[one.join() for one in threads]
print(json.dumps(sorted(reached)))
"""


@dataclass
class Outside:
    """Somebody beyond the cluster, who answers everybody and remembers what was said."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)


@contextmanager
def listening() -> Iterator[Outside]:
    """Listen on this machine, by TCP and UDP on one port."""
    outside = Outside()

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            said, socket = self.request
            outside.heard.append(said)
            socket.sendto(said, self.client_address)

    class Connection(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            outside.heard.append(b"connected")

    with (
        socketserver.ThreadingTCPServer(("", 0), Connection) as tcp,
        socketserver.ThreadingUDPServer(tcp.server_address, Datagram) as udp,
    ):
        outside.port = tcp.server_address[1]
        servers = (tcp, udp)
        threads = [threading.Thread(target=one.serve_forever) for one in servers]
        for thread in threads:
            thread.start()
        try:
            yield outside
        finally:
            for one in servers:
                one.shutdown()
            for thread in threads:
                thread.join()


def command(ways: dict[str, Way], *, seconds: float, word: str) -> str:
    """Return a shell command that tries the ways."""
    return shlex.join(["python3", "-c", PROGRAM, json.dumps(ways), str(seconds), word])


@contextmanager
def laid_out(release: Installed) -> Iterator[tuple[dict[str, Way], Outside]]:
    """Lend every way that somebody free was seen to get through, from the first worker."""
    with ExitStack() as stack:
        outside = stack.enter_context(listening())
        free = stack.enter_context(_free(release))
        stack.enter_context(_metadata(release, free))
        ways = _ways(release, outside)
        free.run(
            "free",
            ["python3", "-c", PROGRAM, json.dumps(ways), str(PATIENCE_SECONDS), "free"],
            image=reference("sandbox"),
            nodeName=_worker(release),
        )
        assert free.ended("free").exit_code == 0
        reached = json.loads(free.core.read_namespaced_pod_log("free", FREE))
        assert set(reached) == set(ways)
        assert any(b"free" in one for one in outside.heard)
        yield ways, outside


def _ways(release: Installed, outside: Outside) -> dict[str, Way]:
    core = release.core
    nodes = {one.metadata.name: _internal(one) for one in core.list_node().items}
    gateway = core.read_namespaced_service(f"{NAME}-gateway", NAMESPACE).spec
    names = core.read_namespaced_service("kube-dns", "kube-system").spec.cluster_ip
    name_server = core.list_namespaced_pod("kube-system", label_selector="k8s-app=kube-dns").items[0].status.pod_ip
    beyond = release.cluster.engine.docker("exec", _worker(release), "ip", "route", "show", "default").split()[2]
    return {
        "the metadata address": ("tcp", METADATA, 80),
        "the API server": ("tcp", "10.96.0.1", 443),
        "the API server's own address": ("tcp", nodes[f"{release.cluster.name}-control-plane"], 6443),
        **{f"the kubelet of {name}": ("tcp", address, 10250) for name, address in nodes.items()},
        "a port of the node": ("tcp", nodes[_worker(release)], gateway.ports[0].node_port),
        "the gateway": ("tcp", release.pods("gateway")[0].status.pod_ip, 8080),
        "the gateway's service": ("tcp", gateway.cluster_ip, gateway.ports[0].port),
        "the controller's metrics": ("tcp", release.pods("controller")[0].status.pod_ip, 9090),
        "the name service": ("udp", names, 53),
        "the name service by TCP": ("tcp", names, 53),
        "a name server": ("udp", name_server, 53),
        "somebody outside": ("tcp", beyond, outside.port),
        "somebody outside by UDP": ("udp", beyond, outside.port),
        "an echo from outside": ("icmp", beyond, 0),
        "an echo from a node": ("icmp", nodes[_worker(release)], 0),
        "an echo from a pod": ("icmp", name_server, 0),
    }


@contextmanager
def _free(release: Installed) -> Iterator[Namespace]:
    """Lend a namespace without policies, where pods may be anything."""
    release.core.create_namespace({"metadata": {"name": FREE}})

    def account() -> bool:
        found = release.core.list_namespaced_service_account(FREE, field_selector="metadata.name=default")
        return bool(found.items)

    wait_for("the namespace's service account", account)
    try:
        yield Namespace(FREE, release.core)
    finally:
        release.core.delete_namespace(FREE)


@contextmanager
def _metadata(release: Installed, free: Namespace) -> Iterator[None]:
    """Serve the metadata address on the first worker, as clouds do."""
    node, docker = _worker(release), release.cluster.engine.docker
    docker("exec", node, "ip", "address", "replace", f"{METADATA}/32", "dev", "lo")
    try:
        free.run(
            "metadata",
            ["python3", "-m", "http.server", "80", "--bind", METADATA, "--directory", "/etc"],
            image=reference("sandbox"),
            container={"securityContext": {"runAsUser": 0}},
            nodeName=node,
            hostNetwork=True,
        )
        yield
    finally:
        docker("exec", node, "ip", "address", "delete", f"{METADATA}/32", "dev", "lo")


def _worker(release: Installed) -> str:
    return f"{release.cluster.name}-worker"


def _internal(node: Any) -> str:
    (address,) = (one.address for one in node.status.addresses if one.type == "InternalIP")
    text: str = address
    return text
