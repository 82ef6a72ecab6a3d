"""
What a dashboard is made of, and the few forms in which its questions to Prometheus come.

Rates are per second over Grafana's own interval, single numbers are about the
whole time shown. Every question is about the namespaces and, where it can be,
the environments chosen at the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

PLACE: Final = 'namespace=~"$namespace"'
ENVIRONMENT: Final = f'{PLACE}, environment=~"$environment"'
RATE: Final = "$__rate_interval"
SHOWN: Final = "$__range"
# Grafana knows no sandboxes and no calls; its own "requests per second" would be wrong for most of what is counted.
PER_SECOND: Final = "suffix:/s"
YES_NO: Final = "bool_yes_no"
# The processes of one service: by pod where Prometheus knows it, else by address.
PROCESS: Final = "pod, instance"


class Kind(Enum):
    """How figures are drawn."""

    LINES = auto()
    STACK = auto()
    HEAT = auto()
    NUMBER = auto()
    TABLE = auto()


@dataclass(frozen=True, slots=True)
class Query:
    """One question, and how its series are called."""

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
    """Ask how often something happened in the whole time shown, and leave out what did not."""
    return Query(f"{_times(metric, by, where, SHOWN)} > 0")


def events(metric: str, legend: str, *, where: str = ENVIRONMENT) -> Query:
    """Ask how often something happened lately, under one name."""
    return Query(_times(metric, "", where, RATE), legend)


def share(part: str, whole: str, *, by: str) -> Query:
    """Ask which part of something is of a kind, over time; nothing where nothing happened."""
    return Query(f"sum by ({by}) (rate({part}[{RATE}])) / (sum by ({by}) (rate({whole}[{RATE}])) > 0)", _legend(by))


def share_of_all(part: str, whole: str) -> Query:
    """Ask which part of something was of a kind, over the whole time shown."""
    return Query(f"sum (increase({part}[{SHOWN}])) / (sum (increase({whole}[{SHOWN}])) > 0)", "share")


def quantiles(histogram: str, *, where: str = ENVIRONMENT, by: str = "") -> tuple[Query, ...]:
    """Ask for the median, the 95th and the 99th of a hundred."""
    group = f"{by}, le" if by else "le"
    prefix = f"{_legend(by)} " if by else ""
    return tuple(
        Query(
            f"histogram_quantile({q / 100}, sum by ({group}) (rate({histogram}_bucket{{{where}}}[{RATE}])))",
            f"{prefix}p{q}",
        )
        for q in (50, 95, 99)
    )


def whole(queries: tuple[Query, ...]) -> tuple[Query, ...]:
    """Round up what is counted in whole numbers: within a bucket Prometheus can only guess, and guesses fractions."""
    return tuple(Query(f"ceil({query.expr})", query.legend) for query in queries)


def spread(histogram: str, *, where: str = ENVIRONMENT) -> tuple[Query, ...]:
    """Ask how many fell into each bucket."""
    return (Query(f"sum by (le) (increase({histogram}_bucket{{{where}}}[{RATE}]))", "{{le}}"),)


def level(metric: str, *, by: str, where: str = ENVIRONMENT) -> Query:
    """Ask how a gauge stands; only one leader tells, but two may be scraped."""
    return Query(f"max by ({by}) ({metric}{{{where}}})", _legend(by))


def _times(metric: str, by: str, where: str, window: str) -> str:
    # Prometheus guesses what was at the ends of a window, and so tells of 2.1 events.
    group = f" by ({by})" if by else ""
    return f"round(sum{group} (increase({metric}{{{where}}}[{window}])))"


def _legend(by: str) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
