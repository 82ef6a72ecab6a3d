"""
Pools and bursts: whether a step's rollouts find their sandboxes, and what it takes to refill.
"""

from __future__ import annotations

from monitoring.charts import (
    ENVIRONMENT,
    PER_SECOND,
    PLACE,
    Board,
    Chart,
    Kind,
    Query,
    Row,
    happened,
    level,
    per_second,
    quantiles,
    spread,
)

_ENVIRONMENT = "environment"
_IN_USE = (
    f"rollcage:pool:in_use{{{ENVIRONMENT}}}"
    f' / on (namespace, environment) rollcage:pool:sandboxes{{{ENVIRONMENT}, state="most"}}'
)

_POOLS = Row(
    "Pools",
    (
        Chart(
            "Sandboxes by state",
            "In a burst ready falls and claimed rises; then starting, until ready is wanted again.",
            (level("rollcage_pool_sandboxes", by="environment, state", where=f'{ENVIRONMENT}, state!="most"'),),
        ),
        Chart(
            "Share of the bound in use",
            "At 100 % as many are ready or claimed as maxPods allows, and whoever comes waits for others to end.",
            (Query(_IN_USE, "{{environment}}"),),
            "percentunit",
            width=8,
            colours=((1, "red"),),
        ),
        Chart(
            "Leading controllers",
            "Exactly one for each installation.",
            (Query(f"sum by (namespace) (rollcage_leader{{{PLACE}}})", "{{namespace}}"),),
            kind=Kind.NUMBER,
            width=4,
            colours=((0, "red"), (1, "green"), (2, "red")),
        ),
        Chart(
            "Sandboxes that become ready",
            "The refill rate.",
            (per_second("rollcage_pool_refills_total", by=_ENVIRONMENT, where=ENVIRONMENT),),
            PER_SECOND,
        ),
        Chart(
            "Time to start a sandbox",
            "From creation to ready.",
            quantiles("rollcage_sandbox_start_seconds", by=_ENVIRONMENT),
            "s",
        ),
        Chart(
            "Starts given up, by reason",
            "The controller waits before it tries again.",
            (happened("rollcage_start_failures_total", by="environment, reason"),),
            kind=Kind.STACK,
            width=24,
        ),
    ),
)

_BURSTS = Row(
    "Bursts",
    (
        Chart(
            "Rollouts that begin",
            "Each claims one sandbox.",
            (per_second("rollcage_claim_seconds_count", by=_ENVIRONMENT, where=ENVIRONMENT),),
            PER_SECOND,
        ),
        Chart(
            "Rollouts in line",
            "Those that found no sandbox ready.",
            (level("rollcage_queue_length", by=_ENVIRONMENT),),
        ),
        Chart(
            "Time to claim",
            "From wanting a sandbox to having one: milliseconds while the pool lasts.",
            quantiles("rollcage_claim_seconds", by=_ENVIRONMENT),
            "s",
        ),
        Chart(
            "Time in line",
            "Of those that had to wait, be it in vain.",
            quantiles("rollcage_queue_seconds", by=_ENVIRONMENT),
            "s",
        ),
        Chart(
            "Claims by how long they took",
            "Two bands are two kinds of rollouts: those that found a sandbox, and those that waited for one.",
            spread("rollcage_claim_seconds"),
            "s",
            Kind.HEAT,
            24,
        ),
    ),
)

POOLS = Board(
    "pools",
    "Rollcage: pools and bursts",
    "Whether the rollouts of a step find their sandboxes at once, and what the refill needs.",
    (_POOLS, _BURSTS),
)
