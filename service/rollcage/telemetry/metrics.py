"""
Every metric, its labels and what values they may have.

Names and labels are decided only here; when to count is for those who know
what happened. The registry is passed in, so that two services in one process,
or two tests, never count into each other.

Label values are members of the enums given here, or names that pass through
``Environments``: anything else is an error of whoever wrote it.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeAlias, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from rollcage.core.verdict_words import Cause, Word
from rollcage.telemetry.labels import (
    ArchiveLabel,
    AuthLabel,
    DialectLabel,
    Environments,
    GradeLabel,
    LimitLabel,
    OutcomeLabel,
    PoolLabel,
    RefusalLabel,
    ReloadLabel,
    SpanLabel,
    StartLabel,
    StatusLabel,
    ToolLabel,
)
from rollcage.telemetry.zeroes import begin_at_zero

# A second series beside each counter, telling when it began; nobody reads it.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library declares nothing for it

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

# From a claim of a ready sandbox to the longest that anybody waits in line.
_CLAIM_BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 540)
_CALL_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_START_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600)
_SIZE_BUCKETS: Final = (0, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576)
# Training moves this from tails above 15 to 2-4, and people want to see that.
_CALLS_BUCKETS: Final = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000)
# Most graders give 0 to 1. A mean that reaches 1.0 is a reason to look for a hack.
_SCORE_BUCKETS: Final = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.999, 1, 10, 100)

Value: TypeAlias = StrEnum | str
Allowed: TypeAlias = type[StrEnum] | tuple[type[StrEnum], ...] | Environments
Meter = TypeVar("Meter", Counter, Gauge, Histogram)


@dataclass(frozen=True, slots=True)
class Labelled(Generic[Meter]):
    """A metric that can be written only under allowed labels."""

    meter: Meter
    allowed: Mapping[str, Allowed]
    # The library makes a child's key from texts and takes a lock, every time; a call counts several.
    _children: dict[tuple[Value, ...], Meter]

    def at(self, *values: Value) -> Meter:
        """Return the metric under these label values, in the order of the declaration."""
        found = self._children.get(values)
        return self._made(values) if found is None else found

    def _made(self, values: tuple[Value, ...]) -> Meter:
        texts = [_text(one, value) for one, value in zip(self.allowed.values(), values, strict=True)]
        child = self.meter.labels(*texts) if texts else self.meter
        # A name that is not known yet may become known; only what is fixed is remembered.
        if all(isinstance(value, StrEnum) for value in values):
            self._children[values] = child
        return child


def _text(allowed: Allowed, value: Value) -> str:
    if isinstance(allowed, Environments):
        return allowed(value)
    if not isinstance(value, allowed):
        raise TypeError(f"{value!r} is not among {allowed}")
    return str(value)


class Metrics:
    """All metrics of one process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.environments = environments = Environments()
        self._declared: list[Labelled[Counter] | Labelled[Gauge] | Labelled[Histogram]] = []

        self.calls = self._counter("calls", "Calls by how they ended", tool=ToolLabel, outcome=OutcomeLabel)
        self.call_failures = self._counter(
            "call_failures", "Calls left without a result, by why", tool=ToolLabel, cause=(Cause, RefusalLabel)
        )
        self.call_seconds = self._histogram(
            "call_seconds", "From request to answer, claims included", _CALL_BUCKETS, tool=ToolLabel
        )
        self.output_bytes = self._histogram("output_bytes", "Output shown to the model", _SIZE_BUCKETS, tool=ToolLabel)
        self.outputs_truncated = self._counter("outputs_truncated", "Outputs that were cut", tool=ToolLabel)
        self.calls_replayed = self._counter("calls_replayed", "Repeated calls answered with the first result")
        self.calls_maybe_delivered = self._counter(
            "calls_maybe_delivered", "Calls that may have run and were not answered at once", environment=environments
        )
        self.misroutes_refused = self._counter(
            "misroutes_refused", "Calls that a sandbox's fence turned away", environment=environments
        )
        self.rollouts_moved = self._counter(
            "rollouts_moved", "Rollouts placed anew before anything reached their sandbox", environment=environments
        )
        self.store_bypassed = self._counter(
            "store_bypassed", "Calls that went on while Redis did not answer", environment=environments
        )
        self.records_dropped = self._counter(
            "records_dropped", "Results that could not be recorded after Redis was away", environment=environments
        )

        self.infra_failures = self._counter(
            "infra_failures", "Rollouts that the infrastructure failed", environment=environments, cause=Cause
        )
        self.verdicts = self._counter("verdicts", "Verdicts given", environment=environments, verdict=Word, cause=Cause)
        self.rollout_calls = self._histogram(
            "rollout_calls", "Calls of a rollout that ended", _CALLS_BUCKETS, environment=environments, verdict=Word
        )

        self.grades = self._counter(
            "grades", "Requests for a score, by what they came to", environment=environments, outcome=GradeLabel
        )
        self.grade_seconds = self._histogram(
            "grade_seconds", "From asking for a score to having it", _START_BUCKETS, environment=environments
        )
        self.scores = self._histogram("scores", "Scores given", _SCORE_BUCKETS, environment=environments)

        self.archives = self._counter("archives", "Ended rollouts written to the archive", result=ArchiveLabel)

        self.claim_seconds = self._histogram(
            "claim_seconds", "From wanting a sandbox to having one", _CLAIM_BUCKETS, environment=environments
        )
        self.queue_seconds = self._histogram(
            "queue_seconds", "Time in line of those that had to wait", _CLAIM_BUCKETS, environment=environments
        )
        self.queue_length = self._gauge("queue_length", "Rollouts that wait for a sandbox", environment=environments)
        self.pool = self._gauge("pool_sandboxes", "Sandboxes of a pool", environment=environments, state=PoolLabel)
        self.pool_refills = self._counter(
            "pool_refills", "Sandboxes that became ready in a pool", environment=environments
        )
        self.sandbox_start_seconds = self._histogram(
            "sandbox_start_seconds", "From creation to ready", _START_BUCKETS, environment=environments
        )
        self.start_failures = self._counter(
            "start_failures",
            "Times that starting sandboxes was given up for a while",
            environment=environments,
            reason=StartLabel,
        )
        self.leader = self._gauge("leader", "Whether this controller leads")
        self.store_up = self._gauge("store_up", "Whether Redis answered this process lately")
        self.store_certificate_expiry = self._gauge(
            "store_certificate_expiry_timestamp_seconds",
            "When the certificate that Redis shows expires, or the authority that signed it; 0 without TLS",
        )

        self.requests = self._counter("requests", "HTTP requests answered", dialect=DialectLabel, status=StatusLabel)
        self.requests_in_flight = self._gauge("requests_in_flight", "HTTP requests being served")
        self.requests_refused = self._counter("requests_refused", "HTTP requests over a bound", limit=LimitLabel)
        self.auth_failures = self._counter("auth_failures", "Requests without a valid token", reason=AuthLabel)
        self.tenant_reloads = self._counter(
            "tenant_reloads", "Times that the changed tenants file was read", result=ReloadLabel
        )
        self.spans_dropped = self._counter("spans_dropped", "Spans that no collector got", reason=SpanLabel)
        self.tenants_stale = self._gauge("tenants_stale", "Whether the tenants file cannot be used as it is now")

    def __iter__(self) -> Iterator[Labelled[Counter] | Labelled[Gauge] | Labelled[Histogram]]:
        """Every metric there is."""
        return iter(self._declared)

    def know(self, environments: Collection[str]) -> None:
        """Count these environments under their own names, from zero on."""
        self.environments.know(environments)
        begin_at_zero(self, environments)

    def exposition(self) -> bytes:
        """Return what Prometheus reads."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, **labels: Allowed) -> Labelled[Counter]:
        return self._kept(
            Labelled(Counter(f"rollcage_{name}", text, tuple(labels), registry=self.registry), labels, {})
        )

    def _gauge(self, name: str, text: str, **labels: Allowed) -> Labelled[Gauge]:
        return self._kept(Labelled(Gauge(f"rollcage_{name}", text, tuple(labels), registry=self.registry), labels, {}))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], **labels: Allowed) -> Labelled[Histogram]:
        meter = Histogram(f"rollcage_{name}", text, tuple(labels), registry=self.registry, buckets=buckets)
        return self._kept(Labelled(meter, labels, {}))

    def _kept(self, metric: Labelled[Meter]) -> Labelled[Meter]:
        self._declared.append(metric)
        return metric
