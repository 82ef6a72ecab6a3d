"""
Who may reach whom, as the chart's NetworkPolicies mean it. Whether a cluster enforces them is another question.
"""

from __future__ import annotations

import pytest

from support.chart import NAMESPACE, RELEASE, SANDBOXES, Peer, Traffic, allowed, rendered


def _part(component: str) -> Peer:
    labels = {
        "app.kubernetes.io/name": "rollcage",
        "app.kubernetes.io/instance": RELEASE,
        "app.kubernetes.io/component": component,
    }
    return Peer(NAMESPACE, labels)


GATEWAY, CONTROLLER, REDIS, DEFINITION, TEST = map(_part, ("gateway", "controller", "redis", "definition", "test"))
SANDBOX = Peer(SANDBOXES, {"rollcage.dev/environment": "e", "rollcage.dev/egress": "none"})
NEIGHBOUR = Peer(SANDBOXES, {"rollcage.dev/environment": "other"})
# A pod that was given the gateway's labels, but lives elsewhere.
IMPOSTOR = Peer("elsewhere", GATEWAY.labels)
STRANGER = Peer(NAMESPACE, {"app": "something-else"})
TRAINER = Peer("training", {"app": "trainer"})
PROMETHEUS = Peer("monitoring", {"app": "prometheus"})
NAME_SERVER = Peer("kube-system", {"k8s-app": "kube-dns"})
KUBELET = Peer(ip="192.168.0.2")
API_SERVER = Peer(ip="192.168.0.1")
METADATA = Peer(ip="169.254.169.254")
INTERNET = Peer(ip="198.51.100.7")

MAY = {
    "a trainer calls the gateway": Traffic(TRAINER, GATEWAY, 8080),
    "prometheus reads the gateway": Traffic(PROMETHEUS, GATEWAY, 8080),
    "prometheus reads the controller": Traffic(PROMETHEUS, CONTROLLER, 9090),
    "the gateway calls a sandbox": Traffic(GATEWAY, SANDBOX, 8750),
    "the controller greets a sandbox": Traffic(CONTROLLER, SANDBOX, 8750),
    "the gateway uses Redis": Traffic(GATEWAY, REDIS, 6379),
    "the controller uses Redis": Traffic(CONTROLLER, REDIS, 6379),
    "the controller asks the API server": Traffic(CONTROLLER, API_SERVER, 6443),
    "the job asks the API server": Traffic(DEFINITION, API_SERVER, 6443),
    "the gateway resolves names": Traffic(GATEWAY, NAME_SERVER, 53, "UDP"),
    "the controller resolves names": Traffic(CONTROLLER, NAME_SERVER, 53, "UDP"),
    "helm test calls the gateway": Traffic(TEST, GATEWAY, 8080),
}
MAY_NOT = {
    "a sandbox calls the gateway": Traffic(SANDBOX, GATEWAY, 8080),
    "a sandbox reads the controller": Traffic(SANDBOX, CONTROLLER, 9090),
    "a sandbox uses Redis": Traffic(SANDBOX, REDIS, 6379),
    "a sandbox calls another": Traffic(SANDBOX, NEIGHBOUR, 8750),
    "a sandbox asks the API server": Traffic(SANDBOX, API_SERVER, 6443),
    "a sandbox asks a kubelet": Traffic(SANDBOX, KUBELET, 10250),
    "a sandbox asks the metadata server": Traffic(SANDBOX, METADATA, 80),
    "a sandbox calls the internet": Traffic(SANDBOX, INTERNET, 443),
    "a sandbox resolves names": Traffic(SANDBOX, NAME_SERVER, 53, "UDP"),
    "a sandbox calls a trainer": Traffic(SANDBOX, TRAINER, 80),
    "a trainer calls a sandbox": Traffic(TRAINER, SANDBOX, 8750),
    "an impostor calls a sandbox": Traffic(IMPOSTOR, SANDBOX, 8750),
    "a stranger beside the gateway calls a sandbox": Traffic(STRANGER, SANDBOX, 8750),
    "the gateway calls another port of a sandbox": Traffic(GATEWAY, SANDBOX, 22),
    "Redis calls a sandbox": Traffic(REDIS, SANDBOX, 8750),
    "a trainer uses Redis": Traffic(TRAINER, REDIS, 6379),
    "a stranger beside it uses Redis": Traffic(STRANGER, REDIS, 6379),
    "an impostor uses Redis": Traffic(IMPOSTOR, REDIS, 6379),
    "Redis calls the internet": Traffic(REDIS, INTERNET, 443),
    "the gateway asks the API server": Traffic(GATEWAY, API_SERVER, 6443),
    "the gateway calls the internet": Traffic(GATEWAY, INTERNET, 443),
    "the gateway calls the controller": Traffic(GATEWAY, CONTROLLER, 9090),
    "helm test uses Redis": Traffic(TEST, REDIS, 6379),
    "somebody outside calls the gateway without having been named": Traffic(INTERNET, GATEWAY, 8080),
    "somebody outside reads the controller without having been named": Traffic(INTERNET, CONTROLLER, 9090),
}


def _says(traffic: Traffic, **settings: str) -> bool:
    (answer,) = allowed(rendered(**settings).of("NetworkPolicy"), [traffic])
    return answer


@pytest.mark.parametrize("traffic", MAY.values(), ids=MAY.keys())
def test_this_is_allowed(traffic: Traffic) -> None:
    assert _says(traffic)


@pytest.mark.parametrize("traffic", MAY_NOT.values(), ids=MAY_NOT.keys())
def test_this_is_not_allowed(traffic: Traffic) -> None:
    assert not _says(traffic)


def test_without_policies_everything_is_allowed_so_the_table_can_fail() -> None:
    assert all(allowed([], list(MAY_NOT.values())))


def test_callers_from_outside_can_be_named() -> None:
    assert _says(
        MAY_NOT["somebody outside calls the gateway without having been named"],
        networkPolicy__gatewayFrom='[{"ipBlock": {"cidr": "198.51.100.0/24"}}]',
    )


@pytest.mark.parametrize(("part", "port"), [(GATEWAY, 8080), (CONTROLLER, 9090)], ids=["gateway", "controller"])
def test_a_prometheus_that_is_no_pod_can_be_named(part: Peer, port: int) -> None:
    named = {"networkPolicy__metricsFrom": '[{"ipBlock": {"cidr": "198.51.100.7/32"}}]'}

    assert _says(Traffic(INTERNET, part, port), **named)
    assert not _says(Traffic(Peer(ip="198.51.100.8"), part, port), **named)


def test_a_model_that_graders_ask_can_be_named() -> None:
    goal = '[{"to": [{"ipBlock": {"cidr": "198.51.100.7/32"}}], "ports": [{"protocol": "TCP", "port": 443}]}]'

    assert _says(MAY_NOT["the gateway calls the internet"], networkPolicy__gatewayTo=goal)


def test_an_external_redis_is_reached_where_its_peers_are_and_nowhere_else() -> None:
    external = {
        "redis__enabled": "false",
        "redis__external": '{"secret": "s", "port": 6380, "peers": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]}',
    }

    assert _says(Traffic(GATEWAY, Peer(ip="10.9.0.1"), 6380), **external)
    assert not _says(Traffic(GATEWAY, Peer(ip="10.8.0.1"), 6380), **external)
