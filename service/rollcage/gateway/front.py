"""
The outermost part: send tool calls past the framework, and bound everything else before it.

FastAPI serves people and programs; tool calls are served by a plain function
beside it, because every layer costs each of them.
"""

from http import HTTPStatus
from typing import Any, Final

from starlette.exceptions import HTTPException

from rollcage.gateway.dialects.agent_rft.reading import PREFIX
from rollcage.gateway.errors import BodyEncoded, BodyTooLarge
from rollcage.gateway.exchange import App, Message, Receive, Scope, Send, send_problem
from rollcage.gateway.ports import Parts
from rollcage.gateway.problems import problem_of
from rollcage.telemetry.labels import DialectLabel, LimitLabel, status_label

# Uploads, which have no size limit but the sandbox's disk.
UNBOUNDED: Final = ("/files", "/tree")
# What the cluster asks, every few seconds.
OPERATIONS: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class Front:
    """Everything that is served on one port."""

    def __init__(self, parts: Parts, *, agent_rft: App, rest: App, state: Any) -> None:
        self._parts = parts
        self._agent_rft = agent_rft
        self._rest = rest
        # Where tools that take an application look for its routes and its OpenAPI.
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the application's life."""
        if scope["type"] != "http":
            await self._rest(scope, receive, send)
        elif scope["path"].startswith(PREFIX):
            await self._agent_rft(scope, receive, send)
        else:
            await self._bounded(scope, receive, send)

    async def _bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._parts.limits.native_body_bytes
        dialect = DialectLabel.OPERATIONS if scope["path"] in OPERATIONS else DialectLabel.NATIVE
        counted = self._counted(send, dialect)
        if scope["method"] == "PUT" and scope["path"].endswith(UNBOUNDED):
            # Streamed on, and never kept here.
            await self._rest(scope, receive, counted)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > limit:
                self._parts.metrics.requests_refused.at(LimitLabel.BODY).inc()
                await send_problem(counted, problem_of(BodyTooLarge(limit=limit)), close=True)
                return
            if name == b"content-encoding" and value.lower() != b"identity":
                refusal = BodyEncoded("bodies are sent as they are, without content-encoding")
                await send_problem(counted, problem_of(refusal), close=True)
                return
        await self._rest(scope, _bounded(receive, limit), counted)

    def _counted(self, send: Send, dialect: DialectLabel) -> Send:
        admission, requests = self._parts.admission, self._parts.metrics.requests

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                requests.at(dialect, status_label(message["status"])).inc()
                if admission.draining:
                    message["headers"] = [*message.get("headers", ()), (b"connection", b"close")]
            await send(message)

        return counted


def _bounded(receive: Receive, limit: int) -> Receive:
    got = 0

    async def bounded() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > limit:
            # The one kind of error that the framework passes on while it reads a body.
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request has at most {limit} bytes here")
        return message

    return bounded
