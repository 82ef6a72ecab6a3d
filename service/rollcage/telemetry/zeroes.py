"""
Let counters begin at zero, before anything is counted.

Prometheus sees an increase only from a value that it has scraped before: a
counter that appears with its first event hides that event from every alert,
and a histogram that appears with a burst hides the burst.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from rollcage.core.verdict_words import Cause, Word
from rollcage.telemetry.labels import Environments, RefusalLabel, ToolLabel

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rollcage.telemetry.metrics import Allowed, Metrics, Value

_OF_TRAINERS: Final = {
    Cause.FINISHED: Word.TRAINABLE,
    Cause.DELETED_BY_TRAINER: Word.ABANDONED,
    Cause.TRAINER_SILENT: Word.ABANDONED,
}


def word_of(cause: Cause) -> Word:
    """Return the verdict that a cause leads to."""
    return _OF_TRAINERS.get(cause, Word.TRAINABLE if cause.is_models else Word.MASKED)


def begin_at_zero(metrics: Metrics, environments: Collection[str]) -> None:
    """Show every counter that alerts look at, for these environments."""
    for counter in (
        metrics.calls,
        metrics.calls_maybe_delivered,
        metrics.misroutes_refused,
        metrics.rollouts_moved,
        metrics.store_bypassed,
        metrics.records_dropped,
        metrics.grades,
        metrics.pool_refills,
        metrics.start_failures,
        metrics.requests,
        metrics.requests_refused,
        metrics.auth_failures,
        metrics.tenant_reloads,
        metrics.archives,
        metrics.spans_dropped,
    ):
        for values in product(*(_values(allowed, environments) for allowed in counter.allowed.values())):
            counter.at(*values)
    # Of all combinations only those that can come about: each is a series for Prometheus.
    ours = [cause for cause in Cause if word_of(cause) is Word.MASKED]
    for tool, why in product(ToolLabel, [*RefusalLabel, *ours]):
        metrics.call_failures.at(tool, why)
    for environment, cause in product(environments, Cause):
        metrics.verdicts.at(environment, word_of(cause), cause)
    for environment, cause in product(environments, ours):
        metrics.infra_failures.at(environment, cause)
    # Not the other histograms: each of them is twenty series, and theirs fill slowly.
    for environment in environments:
        metrics.claim_seconds.at(environment)
        metrics.queue_seconds.at(environment)


def _values(allowed: Allowed, environments: Collection[str]) -> Iterable[Value]:
    if isinstance(allowed, Environments):
        return environments
    return allowed if not isinstance(allowed, tuple) else [value for one in allowed for value in one]
