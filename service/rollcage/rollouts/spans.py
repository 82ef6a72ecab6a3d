"""
Let somebody follow a call through its steps: claim, mark, send, record.

Put around the parts that take the time, and only if somebody asked for it:
nothing on a call's way knows of it, so that without it nothing is spent on it.
"""

from contextlib import AbstractContextManager
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, Protocol, cast

from rollcage.core.environment_spec import BuiltinTool
from rollcage.core.errors import CallConflict, RollcageError, RolloutEnded
from rollcage.core.ids import RolloutId
from rollcage.rollouts.act import Acting
from rollcage.rollouts.actions import Action, Answer
from rollcage.rollouts.plainly import Asker
from rollcage.rollouts.routes import Route
from rollcage.rollouts.toolservers import Heard, Toolservers
from rollcage.store.calls import Begun, Call, CallEnding, Calls, Marking
from rollcage.store.claims import Claim, Claims
from rollcage.store.store import Store

# A model calls what it likes, and may write anything into a name.
_UNKNOWN: Final = "unknown"
_BUILTIN: Final = frozenset(tool.value for tool in BuiltinTool)


class Stage(StrEnum):
    """What a call does on its way."""

    CLAIM = "claim"  # and the mark with it, in the same round trip
    MARK = "mark"  # of a call that was sent meanwhile: what is left of it to wait for
    SEND = "send"
    ASK = "ask"  # a sandbox, for the result of a call that may have reached it
    RECORD = "record"  # and the mark of a short call with it


class Span(Protocol):
    """A piece of time that is being told of."""

    def tell(self, **facts: str | float | bool | None) -> None:
        """Add what became known of it; nothing that is None."""

    def failed(self, why: str) -> None:
        """Say that it came to nothing, for this reason."""


class Tracer(Protocol):
    """Makes spans. What is inside of one, in whatever task, belongs to it."""

    def call(
        self, rollout: RolloutId, *, call: str, run: str, environment: str, tool: str
    ) -> AbstractContextManager[Span]:
        """Begin a call."""

    def stage(self, stage: Stage) -> AbstractContextManager[Span]:
        """Begin a step of the call that is under way here."""


def followed_parts(store: Store, toolservers: Toolservers, tracer: Tracer) -> tuple[Store, Toolservers]:
    """Return a call's parts with spans around what they do."""
    claims = cast("Claims", _Claims(store.claims, tracer))
    calls = cast("Calls", _Calls(store.calls, tracer))
    return replace(store, claims=claims, calls=calls), cast("Toolservers", _Toolservers(toolservers, tracer))


def followed_calls(acting: Acting, tracer: Tracer) -> Acting:
    """Return the calls with a span around each."""
    return cast("Acting", _Acting(acting, tracer))


class _Around:
    """Somebody else, but for what is written below."""

    def __init__(self, real: Any, tracer: Tracer) -> None:
        self._real = real
        self._tracer = tracer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class _Acting(_Around):
    def start(self, action: Action, asker: Asker) -> None:
        asker.otherwise(self.act(action))

    async def act(self, action: Action) -> Answer:
        with self._tracer.call(
            action.rollout,
            call=action.call_id,
            run=action.run,
            environment=action.environment.name,
            tool=_name(action),
        ) as span:
            try:
                answer: Answer = await self._real.act(action)
            except (CallConflict, RolloutEnded) as unwanted:
                # Whoever called should not have.
                span.tell(outcome=unwanted.code)
                raise
            except RollcageError as error:
                span.tell(outcome="infra", cause=getattr(error, "cause", None))
                span.failed(error.code)
                raise
            span.tell(outcome=answer.outcome, replayed=answer.replayed, truncated=answer.truncated)
            return answer


def _name(action: Action) -> str:
    custom = (tool.name for tool in action.environment.spec.tools.custom)
    return action.tool if action.tool in _BUILTIN or action.tool in custom else _UNKNOWN


class _Claims(_Around):
    async def start(self, claim: Claim, call: Call) -> Begun:
        with self._tracer.stage(Stage.CLAIM) as span:
            begun: Begun = await self._real.start(claim, call)
            span.tell(
                state=begun.state, sandbox=begun.sandbox.name if begun.sandbox else None, waited_seconds=begun.waited
            )
            return begun


class _Calls(_Around):
    async def begin(self, *what: Any, **how: Any) -> Begun:
        with self._tracer.stage(Stage.MARK) as span:
            return _told(span, await self._real.begin(*what, **how))

    def mark(self, *what: Any, **how: Any) -> Marking:
        return cast("Marking", _Marking(self._real.mark(*what, **how), self._tracer))

    async def finish(self, *what: Any, **how: Any) -> Any:
        with self._tracer.stage(Stage.RECORD):
            return await self._real.finish(*what, **how)


class _Marking(_Around):
    async def begun(self, ending: CallEnding | None, *, within: float) -> Begun:
        stage = Stage.RECORD if ending and not self._real.under_way else Stage.MARK
        with self._tracer.stage(stage) as span:
            return _told(span, await self._real.begun(ending, within=within))


def _told(span: Span, begun: Begun) -> Begun:
    span.tell(state=begun.state, sandbox=begun.sandbox.name if begun.sandbox else None)
    return begun


class _Toolservers(_Around):
    async def call(self, route: Route, *what: Any, **how: Any) -> Heard:
        with self._tracer.stage(Stage.SEND) as span:
            span.tell(sandbox=route.sandbox.name)
            heard: Heard = await self._real.call(route, *what, **how)
            span.tell(came=heard.came)
            return heard

    async def earlier(self, route: Route, call: str, *, wait: float) -> Heard:
        with self._tracer.stage(Stage.ASK) as span:
            span.tell(sandbox=route.sandbox.name)
            heard: Heard = await self._real.earlier(route, call, wait=wait)
            span.tell(came=heard.came)
            return heard
