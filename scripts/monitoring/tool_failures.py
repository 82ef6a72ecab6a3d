"""
Tool failures by cause and tool: what the model got wrong, and what we did.
"""

from __future__ import annotations

from monitoring.charts import (
    CAUSES,
    OUTCOMES,
    PER_SECOND,
    PLACE,
    Board,
    Chart,
    Kind,
    Row,
    events,
    happened,
    happened_in_all,
    nearly_all,
    per_second,
    quantiles,
    share,
    share_of_all,
)

_CALLS = f"rollcage_calls_total{{{PLACE}}}"
_OURS = f'rollcage_calls_total{{{PLACE}, outcome="infra"}}'
_OWN = f'{PLACE}, outcome=~"failed|timed_out|malformed|refused"'
_MODELS = f"rollcage_calls_total{{{_OWN}}}"
_REAL_ONES, _REAL_ONES_FAILED = (f'rollcage_calls_total{{{which}, tool!="unknown"}}' for which in (PLACE, _OWN))

_WHOSE = Row(
    "Whose failure",
    (
        Chart(
            "Calls by outcome",
            "ok and the model's own failures are tool results; infra is what trainers get as 5xx.",
            (per_second("rollcage_calls_total", by="outcome"),),
            PER_SECOND,
            Kind.STACK,
            paint=OUTCOMES,
        ),
        Chart(
            "Ours",
            "The share of calls that the infrastructure left without a result, over the whole time shown.",
            (share_of_all(_OURS, _CALLS),),
            "percentunit",
            Kind.NUMBER,
            6,
            ((0, "green"), (0.005, "orange"), (0.02, "red")),
        ),
        Chart(
            "The model's",
            "The share of calls that failed, timed out, were malformed or refused for a budget, over the whole time "
            "shown. Neither good nor bad: training moves it.",
            (share_of_all(_MODELS, _CALLS),),
            "percentunit",
            Kind.NUMBER,
            6,
        ),
    ),
)

_OUR_SIDE = Row(
    "Ours",
    (
        Chart(
            "Calls without a result, by cause",
            "A verdict's cause masks the rollout; any other may be tried again.",
            (happened("rollcage_call_failures_total", by="cause", where=PLACE),),
            kind=Kind.STACK,
            paint=CAUSES,
        ),
        Chart(
            "Calls without a result, by tool and cause",
            "Over the whole time shown.",
            (happened_in_all("rollcage_call_failures_total", by="tool, cause"),),
            kind=Kind.TABLE,
        ),
        Chart(
            "Answers lost, calls astray",
            "Sent and not answered at once; refused by a sandbox's fence; placed anew before anything ran.",
            (
                events("rollcage_calls_maybe_delivered_total", "answer lost"),
                events("rollcage_misroutes_refused_total", "misrouted"),
                events("rollcage_rollouts_moved_total", "moved"),
            ),
            kind=Kind.STACK,
            paint={"answer lost": "purple", "misrouted": "red", "moved": "yellow"},
        ),
        Chart(
            "Calls repeated",
            "Asked for again by a trainer, and answered with the first result: nothing ran twice.",
            (events("rollcage_calls_replayed_total", "repeated", where=PLACE),),
            kind=Kind.STACK,
            paint={"repeated": "blue"},
        ),
    ),
)

_MODELS_SIDE = Row(
    "The model's",
    (
        Chart(
            "Failures by tool and outcome",
            "Falls as training goes on; a jump at an upgrade of ours is a reason to look.",
            (happened("rollcage_calls_total", by="tool, outcome", where=_OWN),),
            kind=Kind.STACK,
            paint=OUTCOMES,
        ),
        Chart(
            "Share of calls that failed, by tool",
            "A tool that fails far more often than others is badly described, or broken. Names that the model made up, "
            "which always fail, are left out.",
            (share(_REAL_ONES_FAILED, _REAL_ONES, by="tool"),),
            "percentunit",
        ),
        Chart(
            "Time per call, by tool",
            "From request to answer, waiting for a sandbox included, for 95 of 100.",
            nearly_all("rollcage_call_seconds", by="tool", where=PLACE),
            "s",
        ),
        Chart(
            "Output shown to the model",
            "Of one call.",
            quantiles("rollcage_output_bytes", where=PLACE),
            "bytes",
            width=6,
        ),
        Chart(
            "Outputs cut, by tool",
            "What was cut is not in the model's context; many mean that a tool says too much.",
            (per_second("rollcage_outputs_truncated_total", by="tool"),),
            PER_SECOND,
            width=6,
        ),
    ),
)

TOOL_FAILURES = Board(
    "tool-failures",
    "Rollcage: tool failures",
    "Whose failure it is, by cause and tool. What is the model's own is left to training; ours masks rollouts.",
    (_WHOSE, _OUR_SIDE, _MODELS_SIDE),
)
