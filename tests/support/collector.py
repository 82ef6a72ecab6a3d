"""
A collector of traces: takes OTLP over HTTP, keeps the spans, and can be told to refuse or to stand still.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass(frozen=True, slots=True)
class Seen:
    """One span as it came."""

    name: str
    trace: str
    id: str
    parent: str
    error: bool
    nanoseconds: tuple[int, int]
    attributes: dict[str, Any]
    service: str


@dataclass
class Collector:
    """What was sent so far, and how further requests are met."""

    port: int
    status: int = 200
    spans: list[Seen] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    # Requests that wait until they may go on.
    held: int = 0
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def calls(self, count: int) -> list[Seen]:
        """Wait for as many calls, whole, and return them in the order in which they began."""
        until(lambda: len(self._calls()) >= count)
        return self._calls()

    def steps(self, call: Seen) -> list[str]:
        """Return the names of a call's own steps, in the order in which they began."""
        inner = [span for span in self.spans if span.parent == call.id]
        assert {span.trace for span in inner} <= {call.trace}
        return [span.name for span in sorted(inner, key=lambda span: span.nanoseconds)]

    def _calls(self) -> list[Seen]:
        # A call ends after its steps, so they are there when it is.
        found = [span for span in self.spans if span.name.startswith("call ")]
        return sorted(found, key=lambda span: span.nanoseconds)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Lend a collector that takes everything, until told otherwise."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    collector = Collector(server.server_address[1])
    collector.go_on.set()
    server.collector = collector  # type: ignore[attr-defined]  # for the handlers
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield collector
    finally:
        collector.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        collector: Collector = self.server.collector  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["content-length"]))
        if not collector.go_on.is_set():
            collector.held += 1
            collector.go_on.wait()
        if collector.status == 200:
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            collector.bodies.append(body)
            collector.spans += _read(body)
        self.send_response(collector.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _read(body: bytes) -> Iterator[Seen]:
    for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
        service = _values(resource.resource.attributes)["service.name"]
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _seen(span, service)


def _seen(span: Span, service: str) -> Seen:
    return Seen(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        error=span.status.code == span.status.STATUS_CODE_ERROR,
        nanoseconds=(span.start_time_unix_nano, span.end_time_unix_nano),
        attributes=_values(span.attributes),
        service=service,
    )


def _values(attributes: Any) -> dict[str, Any]:
    def value(one: KeyValue) -> Any:
        return getattr(one.value, one.value.WhichOneof("value") or "string_value")

    return {one.key: value(one) for one in attributes}
