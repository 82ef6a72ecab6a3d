"""
What a dashboard is made of, and the few forms in which its questions to Prometheus come.

Rates are per second over Grafana's own interval, single numbers are about the
whole time shown. Every question is about the namespaces and, where it can be,
the environments chosen at the top.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE: Final = 'namespace=~"$namespace"'
ENVIRONMENT: Final = f'{PLACE}, environment=~"$environment"'
RATE: Final = "$__rate_interval"
SHOWN: Final = "$__range"
# Grafana knows no sandboxes and no calls; its own "requests per second" would be wrong for most of what is counted.
PER_SECOND: Final = "suffix:/s"
YES_NO: Final = "bool_yes_no"
# What a word means, it means in every panel: green is well, red is ours to mend, orange is masked, the rest is neither.
OUTCOMES: Final = {
    "ok": "green",
    "failed": "blue",
    "timed_out": "purple",
    "malformed": "light-blue",
    "refused": "yellow",
    "infra": "red",
}
VERDICTS: Final = {"trainable": "green", "masked": "orange", "abandoned": "gray"}
GRADES: Final = {
    "scored": "green",
    "masked": "orange",
    "grader_failed": "red",
    "no_number": "dark-red",
    "timed_out": "purple",
    "refused": "yellow",
}
STATES: Final = {"ready": "green", "claimed": "blue", "starting": "yellow", "wanted": "text", "reserved": "purple"}
STATUSES: Final = {
    "2xx": "green",
    "3xx": "blue",
    "4xx": "yellow",
    "5xx": "red",
    "native 2xx": "dark-green",
    "native 4xx": "dark-yellow",
    "native 5xx": "dark-red",
}
RESULTS: Final = {"written": "green", "failed": "red"}
# By where to look: the nodes, the network, whoever deletes pods, too few sandboxes, Redis, and ourselves.
CAUSES: Final = {
    "evicted|node_out_of_memory|node_lost|preempted|cpu_starved": "orange",
    "unreachable|answer_lost|output_lost": "purple",
    "deleted|stopped_from_outside|restarted": "light-blue",
    "no_sandbox|claim_timed_out|queue_full|still_running|lifetime_over|start_failed": "yellow",
    "store_unavailable|store_recovering": "blue",
    "misrouted|ambiguous_owner|key_refused|toolserver_died|toolserver_fault|unknown|internal": "red",
}
REASONS: Final = {
    "ImagePullFailed": "orange",
    "Unschedulable": "yellow",
    "QuotaExceeded": "blue",
    "SetupFailed": "purple",
    "StartFailed": "red",
    "Rejected": "dark-red",
}


class Kind(Enum):
    """How figures are drawn."""

    LINES = auto()
    STACK = auto()
    HEAT = auto()
    NUMBER = auto()
    TABLE = auto()


@dataclass(frozen=True, slots=True)
class Query:
    """One question, and how its series are called; in a table, its figures."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One panel; it says what it is good for."""

    title: str
    says: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Kind = Kind.LINES
    # Of 24 columns.
    width: int = 12
    # From which figure on it has which colour; lines are drawn there.
    colours: tuple[tuple[float, str], ...] = ()
    # Colours of the series whose names end like this; Grafana itself goes by their order.
    paint: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that belong together."""

    title: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard, written to a file of its name."""

    name: str
    title: str
    says: str
    rows: tuple[Row, ...]
    by_environment: bool = True


def per_second(metric: str, *, by: str, where: str = PLACE) -> Query:
    """Ask how often something happens, by some labels."""
    return Query(f"sum by ({by}) (rate({metric}{{{where}}}[{RATE}]))", _legend(by))


def happened(metric: str, *, by: str, where: str = ENVIRONMENT) -> Query:
    """Ask how often something happened lately, and leave out what did not."""
    return Query(f"{_times(metric, by, where, RATE)} > 0", _legend(by))


def happened_in_all(metric: str, *, by: str, where: str = PLACE) -> Query:
    """Ask how often something happened in the whole time shown, most often first; leave out what did not."""
    return Query(f"sort_desc({_times(metric, by, where, SHOWN)} > 0)", "times")


def events(metric: str, legend: str, *, where: str = ENVIRONMENT) -> Query:
    """Ask how often something happened lately, under one name."""
    return Query(_times(metric, "", where, RATE), legend)


def share(part: str, whole: str, *, by: str) -> Query:
    """Ask which part of something is of a kind, over time; nothing where nothing happened."""
    return Query(f"sum by ({by}) (rate({part}[{RATE}])) / (sum by ({by}) (rate({whole}[{RATE}])) > 0)", _legend(by))


def share_of_all(part: str, whole: str) -> Query:
    """Ask which part of something was of a kind, over the whole time shown."""
    return Query(f"sum (increase({part}[{SHOWN}])) / (sum (increase({whole}[{SHOWN}])) > 0)", "share")


def quantiles(histogram: str, *, where: str = ENVIRONMENT) -> tuple[Query, ...]:
    """Ask for the median, the 95th and the 99th of a hundred."""
    return tuple(Query(_quantile(q, histogram, "le", where), f"p{q}") for q in (50, 95, 99))


def nearly_all(histogram: str, *, by: str, where: str = ENVIRONMENT) -> tuple[Query, ...]:
    """Ask below what 95 of a hundred are; one line for each, since there may be many of them."""
    return (Query(_quantile(95, histogram, f"{by}, le", where), _legend(by)),)


def median_and_tail(histogram: str, *, by: str, where: str = ENVIRONMENT) -> tuple[Query, ...]:
    """Ask for the median and the 95th of a hundred."""
    return tuple(Query(_quantile(q, histogram, f"{by}, le", where), f"{_legend(by)} p{q}") for q in (50, 95))


def whole(queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """Round up what is counted in whole numbers: within a bucket Prometheus can only guess, and guesses fractions."""
    return tuple(Query(f"ceil({query.expr})", query.legend) for query in queries)


def spread(histogram: str, *, where: str = ENVIRONMENT) -> tuple[Query, ...]:
    """Ask how many fell into each bucket."""
    return (Query(f"sum by (le) (increase({histogram}_bucket{{{where}}}[{RATE}]))", "{{le}}"),)


def peak(metric: str, *, by: str, where: str = ENVIRONMENT) -> Query:
    """Ask how high a gauge has been: between two points of a long time shown a whole burst comes and goes."""
    return Query(f"max by ({by}) (max_over_time({metric}{{{where}}}[{RATE}]))", _legend(by))


def of_each_process(extreme: str, metric: str) -> Query:
    """Ask how high or low (*extreme*: max, min) a gauge has been, by pod, or by address where none is known."""
    by_pod, by_address = (
        f"{extreme} by ({label}) ({extreme}_over_time({metric}{{{PLACE}, pod{known}}}[{RATE}]))"
        for label, known in (("pod", '!=""'), ("instance", '=""'))
    )
    return Query(f"{by_pod} or {by_address}", "{{pod}}{{instance}}")


def _times(metric: str, by: str, where: str, window: str) -> str:
    # Prometheus guesses what was at the ends of a window, and so tells of 2.1 events.
    group = f" by ({by})" if by else ""
    return f"round(sum{group} (increase({metric}{{{where}}}[{window}])))"


def _quantile(q: int, histogram: str, by: str, where: str) -> str:
    return f"histogram_quantile({q / 100}, sum by ({by}) (rate({histogram}_bucket{{{where}}}[{RATE}])))"


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
