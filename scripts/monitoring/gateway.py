"""
Gateway latency: how fast answers are given, how many at once, and who is turned away.
"""

from __future__ import annotations

from monitoring.charts import (
    PER_SECOND,
    PLACE,
    RESULTS,
    STATUSES,
    YES_NO,
    Board,
    Chart,
    Kind,
    Query,
    Row,
    events,
    happened,
    of_each_process,
    per_second,
    quantiles,
    share_of_all,
    spread,
)

_WORK = f'{PLACE}, dialect!="operations"'
_FAILED = f'{_WORK}, status="5xx"'
_ASKED = per_second("rollcage_requests_total", by="dialect, status", where=_WORK)

_LATENCY = Row(
    "Latency",
    (
        Chart(
            "Time per call",
            "From request to answer, with what the command itself takes and waiting for a sandbox.",
            quantiles("rollcage_call_seconds", where=PLACE),
            "s",
        ),
        Chart(
            "Time to claim",
            "What the first call of a rollout waits for its sandbox.",
            quantiles("rollcage_claim_seconds", where=PLACE),
            "s",
        ),
        Chart(
            "Calls by how long they took",
            "The brighter, the more. A band far above the rest is a tool that hangs, or a wait for sandboxes.",
            spread("rollcage_call_seconds", where=PLACE),
            "s",
            Kind.HEAT,
            24,
        ),
    ),
)

_REQUESTS = Row(
    "Requests",
    (
        Chart(
            "Requests by dialect and status",
            "What the cluster asks (health, metrics) is left out.",
            (Query(f"{_ASKED.expr} > 0", _ASKED.legend),),
            "reqps",
            Kind.STACK,
            paint=STATUSES,
        ),
        Chart(
            "Failed",
            "The share of requests answered with 5xx, over the whole time shown. Above 2 % an alert fires.",
            (share_of_all(f"rollcage_requests_total{{{_FAILED}}}", f"rollcage_requests_total{{{_WORK}}}"),),
            "percentunit",
            Kind.NUMBER,
            6,
            ((0, "green"), (0.005, "orange"), (0.02, "red")),
        ),
        Chart(
            "In flight",
            "Calls being served by each gateway when they were most, waiting ones among them; controllers serve none.",
            (of_each_process("max", "rollcage_requests_in_flight"),),
            width=6,
        ),
        Chart(
            "Turned away, by bound",
            "in_flight: more gateways. tenant: its quota. body: a request that is too large.",
            (happened("rollcage_requests_refused_total", by="limit", where=PLACE),),
            kind=Kind.STACK,
            paint={"in_flight": "red", "tenant": "orange", "body": "yellow"},
        ),
        Chart(
            "Not let in",
            "Requests without a token, or with one that nobody has.",
            (happened("rollcage_auth_failures_total", by="reason", where=PLACE),),
            kind=Kind.STACK,
            paint={"missing": "yellow", "wrong": "orange"},
        ),
    ),
)

_REDIS = Row(
    "Redis and the archive",
    (
        Chart(
            "Redis answers",
            "Each gateway and controller for itself. A single one that says no has lost its way to Redis.",
            (of_each_process("min", "rollcage_store_up"),),
            YES_NO,
        ),
        Chart(
            "Calls without Redis",
            "Rollouts that run go on while it is away; a result that finds its rollout over is dropped.",
            (
                events("rollcage_store_bypassed_total", "went on", where=PLACE),
                events("rollcage_records_dropped_total", "dropped", where=PLACE),
            ),
            kind=Kind.STACK,
            paint={"went on": "yellow", "dropped": "red"},
        ),
        Chart(
            "Rollouts written to the archive",
            "Those that failed are tried again.",
            (per_second("rollcage_archives_total", by="result"),),
            PER_SECOND,
            width=24,
            paint=RESULTS,
        ),
    ),
)

GATEWAY = Board(
    "gateway",
    "Rollcage: gateway",
    "How fast calls are answered, how many are served at once, and who is turned away.",
    (_LATENCY, _REQUESTS, _REDIS),
    by_environment=False,
)
