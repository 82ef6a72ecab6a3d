"""
Take a trainer's own trace along: its ``traceparent`` (W3C Trace Context) becomes the parent of what is done here.

Around the whole application, and only where traces were asked for. What is not
well-formed counts as not sent.
"""

from opentelemetry.context import attach, detach
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from rollcage.gateway.exchange import App, Receive, Scope, Send, header

_PROPAGATOR = TraceContextTextMapPropagator()


def in_trainers_trace(app: App) -> App:
    """Return the application as it is served when calls are traced."""

    async def traced(scope: Scope, receive: Receive, send: Send) -> None:
        parent = header(scope, b"traceparent") if scope["type"] == "http" else None
        if parent is None:
            await app(scope, receive, send)
            return
        sent = {"traceparent": parent, "tracestate": header(scope, b"tracestate") or ""}
        token = attach(_PROPAGATOR.extract(sent))
        try:
            # A copy, so that the server does not learn how to answer such a request without coming by here.
            await app({**scope}, receive, send)
        finally:
            detach(token)

    return traced
