"""
Speak to toolservers: make calls, ask for calls made before, and read what comes back.

What an answer means for the rollout is decided in ``core.verdicts``; the
contract is ``docs/toolserver.md``.
"""

from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote

import orjson

from rollcage.core.values import value
from rollcage.core.verdict_facts import Came
from rollcage.rollouts.connection import Connection, Cut, Reply, Then, Unsent
from rollcage.rollouts.line import Line
from rollcage.rollouts.routes import Route, Routes
from rollcage.wire.messages import MOST_CALLS_HEADER, ErrorCode, OutcomeClass

_CODES: Final[Mapping[str, Came]] = MappingProxyType(
    {
        ErrorCode.BAD_REQUEST: Came.BAD,
        ErrorCode.TOO_LARGE: Came.BAD,
        ErrorCode.UNSIGNED: Came.KEY_REFUSED,
        ErrorCode.BAD_TOKEN: Came.KEY_REFUSED,
        ErrorCode.BAD_SIGNATURE: Came.KEY_REFUSED,
        ErrorCode.UNKNOWN_KEY: Came.KEY_REFUSED,
        ErrorCode.EXPIRED: Came.KEY_REFUSED,
        ErrorCode.WRONG_SCOPE: Came.KEY_REFUSED,
        ErrorCode.WRONG_AUDIENCE: Came.MISROUTED,
        ErrorCode.BOUND_ELSEWHERE: Came.MISROUTED,
        ErrorCode.RESTARTED: Came.RESTARTED,
        ErrorCode.CALL_CONFLICT: Came.CONFLICT,
        ErrorCode.RESULT_DROPPED: Came.ANSWER_LOST,
        ErrorCode.SEALED: Came.SEALED,
        ErrorCode.INTERNAL: Came.FAULT,
        ErrorCode.INTERRUPTED: Came.INTERRUPTED,
        ErrorCode.NOT_READY: Came.NOT_READY,
        ErrorCode.BUSY: Came.BUSY,
        ErrorCode.JOURNAL_FULL: Came.FULL,
        ErrorCode.STOPPING: Came.STOPPING,
        ErrorCode.UNKNOWN_CALL: Came.UNHEARD,
    }
)

_CLASSES: Final = frozenset(OutcomeClass)

# Plain numbers: looking an enumeration's up takes longer than reading the rest of a head that is known.
_OK: Final = int(HTTPStatus.OK)
_ACCEPTED: Final = int(HTTPStatus.ACCEPTED)

_MOST_CALLS: Final = MOST_CALLS_HEADER.encode()


@value
class Heard:
    """What a sandbox said to a call, and what else it told."""

    came: Came
    body: bytes = b""
    fields: Mapping[str, Any] = field(default_factory=dict)
    replayed: bool = False
    boot: str = ""

    @property
    def message(self) -> str:
        """A refusal's text, for people and the model; never for decisions."""
        return str(self.fields.get("message", ""))


NOT_SENT: Final = Heard(Came.NOT_SENT)

# Beyond the time that a sandbox was asked to wait, it answers at once or not at all.
_TO_ANSWER: Final = 3.0


class Toolservers:
    """All sandboxes' toolservers."""

    def __init__(self, line: Line, routes: Routes) -> None:
        self._line = line
        self._routes = routes

    def kept(self, route: Route) -> Connection | None:
        """Return a connection that is open, if there is one."""
        return self._line.kept(route.sandbox.address)

    async def reach(self, route: Route) -> Connection | None:
        """Connect, or find that nobody is there; nothing is sent yet."""
        try:
            return await self._line.reach(route.sandbox.address)
        except Unsent:
            return None

    async def call(self, route: Route, connection: Connection, body: bytes, *, most: int, seconds: float) -> Heard:
        """Make a call, unless it would be more than the *most*'th. It is sent before anything is awaited."""
        return await self._exchange(route, connection, self._request(route, body, most), seconds=seconds)

    def post(self, route: Route, connection: Connection, body: bytes, *, most: int, seconds: float, then: Then) -> None:
        """Make a call likewise over a usable connection; *then* gets what ``heard`` reads."""
        self._line.send(connection, self._request(route, body, most), seconds=seconds, then=then)

    async def earlier(self, route: Route, call: str, *, wait: float) -> Heard:
        """Ask what came of a call made before, waiting so long for it to end."""
        connection = await self.reach(route)
        if connection is None:
            return NOT_SENT
        request = b"GET /v1/calls/%b?wait_ms=%d HTTP/1.1\r\n%b\r\n" % (
            quote(call, safe="").encode(),
            int(wait * 1000),
            self._routes.head(route),
        )
        return await self._exchange(route, connection, request, seconds=wait + _TO_ANSWER)

    async def _exchange(self, route: Route, connection: Connection, request: bytes, *, seconds: float) -> Heard:
        try:
            reply = await self._line.exchange(connection, request, seconds=seconds)
        except Unsent:
            return NOT_SENT
        except Cut as cut:
            return heard(route, cut)
        return heard(route, reply)

    def _request(self, route: Route, body: bytes, most: int) -> bytes:
        return b"POST /v1/calls HTTP/1.1\r\n%b%b: %d\r\nContent-Length: %d\r\n\r\n%b" % (
            self._routes.head(route),
            _MOST_CALLS,
            most,
            len(body),
            body,
        )


def heard(route: Route, outcome: Reply | Cut) -> Heard:
    """Read what came of a request to a route's sandbox."""
    if isinstance(outcome, Cut):
        return Heard(Came.ANSWER_LOST)
    said = read(outcome)
    if said.came is Came.RESULT:
        route.knows(said.boot)
    return said


def read(reply: Reply) -> Heard:
    """Read an answer; what is no answer of a toolserver is OUTPUT_LOST."""
    if reply.status == _ACCEPTED:
        return Heard(Came.RUNNING, boot=reply.boot)
    try:
        fields = orjson.loads(reply.body)
        if reply.status == _OK:
            came = Came.RESULT if _is_result(fields) else Came.OUTPUT_LOST
        else:
            # A code of a later release: nobody here knows whether something ran.
            came = _CODES.get(fields["code"], Came.FAULT)
    except (ValueError, KeyError, TypeError):
        return Heard(Came.OUTPUT_LOST, reply.body, boot=reply.boot)
    return Heard(came, reply.body, fields, reply.replayed, reply.boot)


def _is_result(fields: Any) -> bool:
    return isinstance(fields["output"], str) and fields["class"] in _CLASSES and isinstance(fields["facts"], dict)
