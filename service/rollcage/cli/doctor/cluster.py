"""
Whether a cluster holds an installation that can work.

Looks at its objects one after the other; what they mean stands in
``cluster_facts``.
"""

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rollcage.cli.doctor.cluster_facts import (
    INSTALL,
    Installation,
    Json,
    enforced,
    environments,
    installation,
    leader,
    namespace,
    parts,
    policed,
)
from rollcage.cli.doctor.findings import Finding, broken, ok, warning
from rollcage.core.errors import RollcageError

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from rollcage.sandboxes.kubernetes.api import Api

_PARTS: Final = "app.kubernetes.io/part-of=rollcage"
_DEFINITION: Final = "environments.rollcage.dev"


async def look_at_cluster(kubeconfig: Path, *, enforcement: bool) -> list[Finding]:
    """Look at the cluster that a kubeconfig names; *enforcement* tries its NetworkPolicies, which takes a minute."""
    # Not at the top: the other commands work without the service's packages.
    from rollcage.sandboxes.kubernetes.api import connected  # noqa: PLC0415

    if not kubeconfig.is_file():  # noqa: ASYNC240 - nobody else waits
        return [broken("cluster", f"{kubeconfig} is not there", "give --kubeconfig, or set KUBECONFIG")]
    try:
        async with connected(kubeconfig) as api:
            version = await api.request("GET", "/version")
            found = [ok("cluster", f"Kubernetes {version.get('gitVersion', '')} answers")]
            return [*found, *await _installed(api, enforcement=enforcement)]
    # A kubeconfig can be wrong in more ways than its library has errors for.
    except Exception as error:  # noqa: BLE001
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        return [broken("cluster", f"{kubeconfig}: {said}", "check the kubeconfig: kubectl --kubeconfig … version")]


async def _installed(api: "Api", *, enforcement: bool) -> list[Finding]:
    found = [await looked("resource definition", _definition(api))]
    try:
        listed = await api.request("GET", "/apis/apps/v1/deployments", query={"labelSelector": _PARTS})
    except RollcageError as error:
        return [*found, _unseen("controller", error)]
    where = installation(listed.get("items", []))
    if where is None:
        return [*found, broken("controller", "no controller is deployed", INSTALL)]
    found += parts(listed["items"])
    looks = {
        "leader": _leader,
        "sandboxes' namespace": _namespace,
        "network policies": _policies,
        "environments": _environments,
        **({"enforcement": _enforced} if enforcement else {}),
    }
    return [*found, *[await looked(check, look(api, where)) for check, look in looks.items()]]


async def looked(check: str, look: "Awaitable[Finding]") -> Finding:
    """Return what a look finds; what may not be looked at is no reason to stop."""
    try:
        return await look
    except RollcageError as error:
        return _unseen(check, error)


async def _definition(api: "Api") -> Finding:
    check = "resource definition"
    found = await _there(api, f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{_DEFINITION}")
    if found is None:
        return broken(check, f"{_DEFINITION} is not there", INSTALL)
    conditions = found.get("status", {}).get("conditions", ())
    if not any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
        return broken(check, "the API server has not accepted it", f"kubectl describe crd {_DEFINITION}")
    return ok(check, _DEFINITION)


async def _leader(api: "Api", where: Installation) -> Finding:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{where.lease_namespace}/leases/{where.lease}"
    return leader(await _there(api, path), now=datetime.now(UTC))


async def _namespace(api: "Api", where: Installation) -> Finding:
    return namespace(where.sandboxes, await _there(api, f"/api/v1/namespaces/{where.sandboxes}"))


async def _policies(api: "Api", where: Installation) -> Finding:
    path = f"/apis/networking.k8s.io/v1/namespaces/{where.sandboxes}/networkpolicies"
    return policed(where.sandboxes, (await api.request("GET", path)).get("items", []))


async def _environments(api: "Api", where: Installation) -> Finding:
    path = f"/apis/rollcage.dev/v1alpha1/namespaces/{where.sandboxes}/environments"
    return environments(((await _there(api, path)) or {}).get("items", []))


async def _enforced(api: "Api", where: Installation) -> Finding:
    from rollcage.cli.enforcement import try_enforcement  # noqa: PLC0415 - as above

    return enforced(await try_enforcement(api, image=where.image))


async def _there(api: "Api", path: str) -> Json | None:
    from rollcage.sandboxes.kubernetes.refusals import NotThere  # noqa: PLC0415 - as above

    with suppress(NotThere):
        return await api.request("GET", path)
    return None


def _unseen(check: str, error: RollcageError) -> Finding:
    return warning(check, f"it could not be looked at: {error}", "use a kubeconfig that may: see docs/cli.md")
