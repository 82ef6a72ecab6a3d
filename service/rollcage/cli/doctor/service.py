"""
Whether a service at an address can serve trainers.
"""

from datetime import UTC, datetime
from typing import Final

from rollcage.cli.doctor.findings import Finding, broken, ok, warning
from rollcage.cli.options import HASTY
from rollcage.client import Client
from rollcage.client.errors import BadAnswer, NotAuthorized, ServiceError, Unreachable
from rollcage.client.models import Pool, Pools, Readiness

# Signed requests are good for minutes; what is shown in logs and consoles is confusing long before.
_SKEW_NOTICED: Final = 5.0
_SKEW_HARMFUL: Final = 240.0


def look_at_service(url: str, token: str) -> list[Finding]:
    """Look at a service as a trainer would find it."""
    with Client(url, token, patience=HASTY) as client:
        try:
            return [*_door(client), *_inside(client)]
        except Unreachable as error:
            return [
                broken(
                    "reachable",
                    str(error),
                    "is the address right, is the service up, does a firewall stand in between?",
                )
            ]
        except BadAnswer as error:
            return [broken("reachable", str(error), "let --url name the gateway itself, without a path")]


def _door(client: Client) -> list[Finding]:
    began = datetime.now(UTC)
    try:
        told = client.readiness()
    except ServiceError as error:
        return [ok("reachable", client.url), _not_ready(error)]
    # The answer was written somewhere between our asking and our reading.
    middle = began + (datetime.now(UTC) - began) / 2
    skew = (told.time - middle).total_seconds() if told.time else None
    return [ok("reachable", client.url), readiness(told), clock(skew)]


def _inside(client: Client) -> list[Finding]:
    try:
        environments = client.environments()
        pools = client.pools()
    except NotAuthorized as error:
        remedy = "set ROLLCAGE_TOKEN to a token whose hash is in the tenants' file; `rollcage token` makes both"
        return [broken("token", error.detail, remedy)]
    except ServiceError as error:
        return [broken("environments", str(error), "look at the gateway's log")]
    found = [ok("token", "it is known")]
    if not environments:
        remedy = "kubectl apply an Environment into the sandboxes' namespace, or give `rollcage dev` one"
        return [*found, broken("environments", "there are none", remedy)]
    found.append(ok("environments", ", ".join(environment.name for environment in environments)))
    return [*found, *levels(pools)]


def readiness(told: Readiness) -> Finding:
    """Decide about the gateway's own word."""
    missing = [name for name, good in told.checks.items() if not good]
    if told.draining:
        return warning("ready", "it is being stopped", "wait for its successor")
    if missing:
        return warning("ready", f"it serves, without {', '.join(missing)}", f"look at {', '.join(missing)}")
    return ok("ready", ", ".join(told.checks) or "yes")


def levels(told: Pools) -> list[Finding]:
    """Decide about the pools."""
    found = [] if told.controller_heard else [_no_controller()]
    return [*found, *map(_level, told.pools)]


def clock(skew: float | None) -> Finding:
    """Decide about the service's clock, which is ahead of ours by so many seconds."""
    if skew is None:
        return warning("clock", "the service does not tell its time", "compare the clocks by hand")
    said = f"{abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    if abs(skew) >= _SKEW_HARMFUL:
        return broken("clock", said, "let both machines follow a time server; signatures hold for minutes only")
    if abs(skew) >= _SKEW_NOTICED:
        return warning("clock", said, "let both machines follow a time server")
    return ok("clock", "agrees with this machine's")


def _no_controller() -> Finding:
    remedy = "is a controller running, and does it lead? kubectl logs of the controller; `rollcage doctor --cluster`"
    return broken("controller", "no controller has told of the pools lately", remedy)


def _level(pool: Pool) -> Finding:
    name, ready = f"pool {pool.environment}", pool.ready + pool.set_aside
    said = f"{ready} of {pool.wanted} ready, {pool.claimed} in use, {pool.waiting} rollouts wait"
    if ready >= pool.wanted and not pool.waiting:
        return ok(name, said)
    if ready or pool.claimed or pool.starting:
        return warning(name, said, "it is being filled; if that does not end, look at the environment's status")
    remedy = "kubectl describe environment shows why none starts: image, quota, node; on a laptop the log does"
    return broken(name, said, remedy)


def _not_ready(error: ServiceError) -> Finding:
    return broken("ready", f"it does not serve yet ({error.detail[:120]})", "it needs Redis and its signing keys")
