"""
Tell OpenTelemetry of calls, as spans.

Imported only where traces were asked for: it needs the extra ``traces``. What is
exported and where to is read from the standard ``OTEL_*`` variables. Ids, names
and how things ended are told; arguments, outputs and secrets are not, nor the
texts of errors, which may quote them.

A call never waits for a collector. Spans stand in a bounded queue; what does not
fit, and what the collector did not take, is counted and forgotten.
"""

import hashlib
import os
import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import SpanKind, StatusCode

from rollcage.core.ids import RolloutId
from rollcage.telemetry.labels import SpanLabel
from rollcage.telemetry.metrics import Metrics

_QUEUE_SIZE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
# Two bursts of 500 first calls; some 10 MB.
_DEFAULT_QUEUE: Final = 8192
# How long the end of a process may be held up by a collector that does not answer.
_LAST_WORDS: Final = 5.0

_PREFIX: Final = "rollcage."
# What an Agent RFT trainer calls its rollouts: 128 bits in hexadecimal, which is a trace id already.
_TRACE: Final = re.compile(r"trace_([0-9a-f]{32})")

_root_id: Final[ContextVar[int | None]] = ContextVar("root_id", default=None)


class _Told:
    """A span that is being told of, and the one it is a part of."""

    __slots__ = ("_parent", "_span")

    def __init__(self, span: trace.Span, parent: trace.Span | None = None) -> None:
        self._span = span
        self._parent = parent

    def tell(self, **facts: str | float | bool | None) -> None:
        """Add what became known of it."""
        for name, value in facts.items():
            if value is None:
                continue
            # Enums are texts; told as what they are, or the exporter would warn of each.
            plain = str(value) if isinstance(value, str) else value
            self._span.set_attribute(_PREFIX + name, plain)
            # People look for calls by their sandbox. A step may outlast its call, which then takes no more.
            if name == "sandbox" and self._parent is not None and self._parent.is_recording():
                self._parent.set_attribute(_PREFIX + name, plain)

    def failed(self, why: str) -> None:
        """Mark it as failed, for a reason that is a code."""
        self._span.set_attribute("error.type", why)
        self._span.set_status(StatusCode.ERROR)


class OpenTelemetryTracer:
    """Spans as OpenTelemetry has them. All calls of a rollout are one trace, unless the trainer brings its own."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer

    @contextmanager
    def call(self, rollout: RolloutId, *, call: str, run: str, environment: str, tool: str) -> Generator[_Told]:
        """Begin a call."""
        fields = {"rollout": rollout.name, "call": call, "run": run, "environment": environment, "tool": tool}
        token = _root_id.set(trace_id(rollout))
        try:
            span = self._tracer.start_span(
                f"call {tool}",
                kind=SpanKind.SERVER,
                attributes={_PREFIX + name: value for name, value in fields.items()},
            )
        finally:
            _root_id.reset(token)
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            yield _Told(span)

    @contextmanager
    def stage(self, stage: str) -> Generator[_Told]:
        """Begin a step of the call that is under way here."""
        parent = trace.get_current_span()
        with self._tracer.start_as_current_span(
            str(stage), kind=SpanKind.CLIENT, record_exception=False, set_status_on_exception=False
        ) as span:
            told = _Told(span, parent)
            try:
                yield told
            except Exception as error:
                told.failed(getattr(error, "code", type(error).__name__))
                raise


def trace_id(rollout: RolloutId) -> int:
    """Return the trace of a rollout: what its trainer calls it where that is one, else one that is made of its name."""
    named = _TRACE.fullmatch(rollout.name)
    if named and (number := int(named[1], 16)):
        return number
    return int.from_bytes(hashlib.sha256(f"{rollout.tenant}/{rollout.name}".encode()).digest()[:16])


class _Ids(IdGenerator):
    """Random, but for the first span of a rollout's call."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()

    def generate_span_id(self) -> int:
        return self._random.generate_span_id()

    def generate_trace_id(self) -> int:
        return _root_id.get() or self._random.generate_trace_id()


class _Bound(SpanProcessor):
    """Lets only so many spans wait; told by the exporter how many went."""

    def __init__(self, inner: SpanProcessor, *, most: int, metrics: Metrics) -> None:
        self._inner = inner
        self._most = most
        self._metrics = metrics
        self._waiting = 0
        self._lock = threading.Lock()

    def on_end(self, span: ReadableSpan) -> None:
        if not (span.context and span.context.trace_flags.sampled):
            return
        with self._lock:
            full = self._waiting >= self._most
            self._waiting += not full
        if full:
            self._metrics.spans_dropped.at(SpanLabel.QUEUE_FULL).inc()
        else:
            self._inner.on_end(span)

    def went(self, spans: int) -> None:
        with self._lock:
            self._waiting -= spans

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


class _Counted(SpanExporter):
    """Counts what a collector did not take."""

    def __init__(self, inner: SpanExporter, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics
        self.bound: _Bound | None = None

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = SpanExportResult.FAILURE
        try:
            result = self._inner.export(spans)
        finally:
            if self.bound:
                self.bound.went(len(spans))
            if result is not SpanExportResult.SUCCESS:
                self._metrics.spans_dropped.at(SpanLabel.NOT_TAKEN).inc(len(spans))
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()


@contextmanager
def opened(metrics: Metrics, *, service: str) -> Iterator[OpenTelemetryTracer]:
    """Lend a tracer that exports as the environment's variables say; *service* is its name unless they give one."""
    most = int(os.environ.get(_QUEUE_SIZE) or _DEFAULT_QUEUE)
    exporter = _Counted(OTLPSpanExporter(), metrics)
    exporter.bound = bound = _Bound(BatchSpanProcessor(exporter, max_queue_size=most), most=most, metrics=metrics)
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: service}))
    provider = TracerProvider(resource=resource, id_generator=_Ids(), shutdown_on_exit=False)
    provider.add_span_processor(bound)
    try:
        yield OpenTelemetryTracer(provider.get_tracer("rollcage"))
    finally:
        # A daemon: whoever does not answer holds nobody up for longer.
        last = threading.Thread(target=provider.shutdown, daemon=True)
        last.start()
        last.join(_LAST_WORDS)
