"""
Rollouts and verdicts: what may be trained on, what is masked and why, and what scores are given.
"""

from __future__ import annotations

from monitoring.charts import (
    CAUSES,
    ENVIRONMENT,
    GRADES,
    RATE,
    VERDICTS,
    Board,
    Chart,
    Kind,
    Query,
    Row,
    happened,
    median_and_tail,
    nearly_all,
    spread,
    whole,
)

_OWN_END = f'{ENVIRONMENT}, verdict="trainable", cause!="finished"'
_ENDED = f'{ENVIRONMENT}, verdict="trainable"'
_MEAN = (
    f"sum by (environment) (rate(rollcage_scores_sum{{{ENVIRONMENT}}}[{RATE}]))"
    f" / (sum by (environment) (rate(rollcage_scores_count{{{ENVIRONMENT}}}[{RATE}])) > 0)"
)

_VERDICTS = Row(
    "Verdicts",
    (
        Chart(
            "Rollouts that ended, by verdict",
            "Only trainable ones get a grade.",
            (happened("rollcage_verdicts_total", by="verdict"),),
            kind=Kind.STACK,
            paint=VERDICTS,
        ),
        Chart(
            "Masked: share of 15 minutes",
            "Above 5 % a run's health says hold, above 25 % skip.",
            (Query(f"rollcage:infra_failure:ratio_increase15m{{{ENVIRONMENT}}}", "{{environment}}"),),
            "percentunit",
            colours=((0.05, "orange"), (0.25, "red")),
        ),
        Chart(
            "Masked, by cause",
            "What the infrastructure did.",
            (happened("rollcage_infra_failures_total", by="environment, cause"),),
            kind=Kind.STACK,
            paint=CAUSES,
        ),
        Chart(
            "Ended by the model itself, by cause",
            "Its own memory, disk or kill; graded like any other.",
            (happened("rollcage_verdicts_total", by="environment, cause", where=_OWN_END),),
            kind=Kind.STACK,
        ),
    ),
)

_CALLS = Row(
    "Calls",
    (
        Chart(
            "Tool calls per rollout",
            "Of those that may be trained on. Training moves this, and people want to see where to.",
            whole(median_and_tail("rollcage_rollout_calls", by="environment", where=_ENDED)),
        ),
        Chart(
            "Rollouts by number of calls",
            "A tail that stays is a budget that is too large, or a model that does not know when to stop.",
            spread("rollcage_rollout_calls", where=_ENDED),
            kind=Kind.HEAT,
        ),
    ),
)

_SCORES = Row(
    "Scores",
    (
        Chart(
            "Requests for a score, by what they came to",
            "All but scored are refused with an error, never answered with a 0.",
            (happened("rollcage_grades_total", by="outcome"),),
            kind=Kind.STACK,
            paint=GRADES,
        ),
        Chart(
            "Mean score",
            "One that climbs to its bound overnight is a reason to look for a hack.",
            (Query(_MEAN, "{{environment}}"),),
        ),
        Chart(
            "Scores",
            "How they are spread.",
            spread("rollcage_scores"),
            kind=Kind.HEAT,
        ),
        Chart(
            "Time to grade",
            "From asking for a score to having it, for 95 of 100.",
            nearly_all("rollcage_grade_seconds", by="environment"),
            "s",
        ),
    ),
)

ROLLOUTS = Board(
    "rollouts",
    "Rollcage: rollouts and verdicts",
    "What may be trained on, what is masked and why, how many calls rollouts make, and what scores they get.",
    (_VERDICTS, _CALLS, _SCORES),
)
