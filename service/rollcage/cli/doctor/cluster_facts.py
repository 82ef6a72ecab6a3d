"""
What the objects of an installation mean; pure, so that each meaning can be tabulated.

Namespaces and names are read from the controller's own Deployment, so that
nobody has to remember what the chart was told.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from rollcage.cli.doctor.findings import Finding, broken, ok, warning

if TYPE_CHECKING:
    from rollcage.cli.enforcement import Enforcement

Json = dict[str, Any]

INSTALL: Final = "helm install rollcage helm/rollcage, see docs/install.md"
_COMPONENT: Final = "app.kubernetes.io/component"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where the parts of an installation are, as its controller was told."""

    namespace: str
    sandboxes: str
    lease_namespace: str
    lease: str
    image: str


def installation(deployments: list[Json]) -> Installation | None:
    """Read from the controller's Deployment where everything is; None if there is no controller."""
    for deployment in deployments:
        if deployment["metadata"].get("labels", {}).get(_COMPONENT) == "controller":
            container = deployment["spec"]["template"]["spec"]["containers"][0]
            told = {one["name"]: one.get("value", "") for one in container.get("env", [])}
            here = deployment["metadata"]["namespace"]
            return Installation(
                namespace=here,
                sandboxes=told.get("ROLLCAGE_SANDBOX_NAMESPACE", here),
                lease_namespace=told.get("ROLLCAGE_LEASE_NAMESPACE", here),
                lease=told.get("ROLLCAGE_LEASE", "rollcage-controller"),
                image=container["image"],
            )
    return None


def parts(deployments: list[Json]) -> list[Finding]:
    """Decide about gateway and controller."""
    by_part = {one["metadata"].get("labels", {}).get(_COMPONENT): one for one in deployments}
    found = []
    for part in ("gateway", "controller"):
        deployment = by_part.get(part)
        if deployment is None:
            found.append(broken(part, "it is not deployed", INSTALL))
            continue
        wanted = deployment["spec"].get("replicas", 1)
        there = deployment.get("status", {}).get("availableReplicas", 0)
        said, place = f"{there} of {wanted} available", deployment["metadata"]["namespace"]
        remedy = f"kubectl -n {place} describe pods -l {_COMPONENT}={part}; kubectl -n {place} logs deploy/{part}"
        if wanted and not there:
            found.append(broken(part, said, remedy))
        else:
            found.append(ok(part, said) if there >= wanted else warning(part, said, remedy))
    return found


def leader(lease: Json | None, *, now: datetime) -> Finding:
    """Decide whether a controller leads."""
    remedy = "look at the controllers' logs: can they reach the API server and Redis?"
    spec = (lease or {}).get("spec", {})
    if not spec.get("holderIdentity"):
        return broken("leader", "no controller leads", remedy)
    renewed = datetime.fromisoformat(spec["renewTime"])
    age = (now - renewed).total_seconds()
    if age > spec.get("leaseDurationSeconds", 15) * 2:
        return broken("leader", f"{spec['holderIdentity']} led, and was last heard of {age:.0f} s ago", remedy)
    return ok("leader", spec["holderIdentity"])


def namespace(name: str, found: Json | None) -> Finding:
    """Decide about the namespace of the sandboxes."""
    check = "sandboxes' namespace"
    if found is None:
        return broken(check, f"{name} is not there", INSTALL)
    enforced = found["metadata"].get("labels", {}).get("pod-security.kubernetes.io/enforce", "nothing")
    if enforced != "restricted":
        remedy = f"kubectl label namespace {name} pod-security.kubernetes.io/enforce=restricted"
        return broken(check, f"{name} enforces {enforced}, so a sandbox could be privileged", remedy)
    return ok(check, f"{name} enforces restricted")


def policed(name: str, policies: list[Json]) -> Finding:
    """Decide whether a policy closes everything that no other opens."""
    for policy in policies:
        spec = policy["spec"]
        closes = set(spec.get("policyTypes", ())) >= {"Ingress", "Egress"} and not spec.get("egress")
        if closes and not spec.get("podSelector"):
            return ok("network policies", f"{name} is closed by default")
    remedy = "install the chart's policies: nothing in it may be reached, or reach out, unless a policy says so"
    return broken("network policies", f"nothing closes {name} by default", remedy)


def environments(resources: list[Json]) -> Finding:
    """Decide about the environments' own status."""
    if not resources:
        return warning("environments", "there are none", "kubectl apply one, see docs/environments.md")
    unready = [
        f"{one['metadata']['name']} ({condition.get('reason', '')})"
        for one in resources
        for condition in one.get("status", {}).get("conditions", ())
        if condition["type"] == "Ready" and condition["status"] != "True"
    ]
    if unready:
        return warning("environments", f"not ready: {', '.join(unready)}", "kubectl describe environment says why")
    return ok("environments", ", ".join(one["metadata"]["name"] for one in resources))


def enforced(seen: "Enforcement") -> Finding:
    """Decide about a trial of NetworkPolicies."""
    check, said = "enforcement", f"out: {seen.egress}, in: {seen.ingress}"
    if seen.whole:
        return ok(check, "forbidden connections were stopped, both ways, from the first instant")
    remedy = "install a network plugin that enforces NetworkPolicies (Calico, Cilium, kube-router, kindnet)"
    if "no" in {seen.egress.value, seen.ingress.value}:
        return broken(check, f"forbidden connections went through ({said})", remedy)
    return warning(check, f"forbidden connections went through at first ({said})", remedy)
