"""
Pools and bursts: whether a step's rollouts find their sandboxes, and what it takes to refill.
"""

from __future__ import annotations

from monitoring.charts import (
    ENVIRONMENT,
    PER_SECOND,
    PLACE,
    RATE,
    REASONS,
    STATES,
    Board,
    Chart,
    Kind,
    Query,
    Row,
    happened,
    nearly_all,
    peak,
    per_second,
    spread,
)

_ENVIRONMENT = "environment"


def _of(state: str) -> str:
    return f'rollcage:pool:sandboxes{{{ENVIRONMENT}, state="{state}"}}'


# At its highest: rollouts of a step may have come and gone between two points.
_CLAIMED = f"max_over_time({_of('claimed')}[{RATE}]) / on (namespace, environment) {_of('most')}"
_MISSING = f"clamp_min({_of('wanted')} - on (namespace, environment) {_of('ready')}, 0)"
_BY_STATE = f'sum by (state) (rollcage:pool:sandboxes{{{ENVIRONMENT}, state!="most"}})'

_POOLS = Row(
    "Pools",
    (
        Chart(
            "Sandboxes by state",
            "Of all environments chosen. In a burst ready falls and claimed rises; then starting, "
            "as long as ready is below wanted.",
            (Query(_BY_STATE, "{{state}}"),),
            paint=STATES,
        ),
        Chart(
            "Share of the bound that is claimed",
            "At 100 % all that maxPods allows are claimed, and whoever comes waits for others to end.",
            (Query(_CLAIMED, "{{environment}}"),),
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
            "From creation to ready, for 95 of 100.",
            nearly_all("rollcage_sandbox_start_seconds", by=_ENVIRONMENT),
            "s",
        ),
        Chart(
            "Wanted and not ready",
            "What the refill has still to bring. It rises with a burst; where it stays, a pool is not refilled.",
            (Query(_MISSING, "{{environment}}"),),
        ),
        Chart(
            "Starts given up, by reason",
            "The controller waits before it tries again.",
            (happened("rollcage_start_failures_total", by="environment, reason"),),
            kind=Kind.STACK,
            paint=REASONS,
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
            "Those that found no sandbox ready, when they were most.",
            (peak("rollcage_queue_length", by=_ENVIRONMENT),),
        ),
        Chart(
            "Time to claim",
            "From wanting a sandbox to having one, for 95 of 100: milliseconds while the pool lasts.",
            nearly_all("rollcage_claim_seconds", by=_ENVIRONMENT),
            "s",
        ),
        Chart(
            "Time in line",
            "Of those that had to wait, be it in vain, for 95 of 100.",
            nearly_all("rollcage_queue_seconds", by=_ENVIRONMENT),
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
