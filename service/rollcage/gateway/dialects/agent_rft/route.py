"""
Serve Agent RFT's tool calls and grading.

Plain ASGI: every call of every rollout comes this way, and a framework's
routing and validation would take longer than all that is done here.
"""

import secrets
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import structlog

from rollcage.core.environment import Environment
from rollcage.core.errors import RollcageError
from rollcage.core.ids import BadId, RolloutId, environment_name, rollout_id
from rollcage.core.values import value
from rollcage.gateway.auth import admitted, bearer
from rollcage.gateway.definitions import tool_names
from rollcage.gateway.dialects.agent_rft.answering import output_body, refusal_of, score_body, text_of
from rollcage.gateway.dialects.agent_rft.reading import (
    Address,
    Task,
    only_tool,
    read_address,
    read_call,
    read_grade,
)
from rollcage.gateway.errors import BodyTooLarge, EnvironmentUnknown, NoSuchRoute, WrongMethod
from rollcage.gateway.exchange import (
    AGAIN,
    Gone,
    Receive,
    Scope,
    Send,
    Turn,
    Whole,
    given_body,
    header,
    read_body,
    send_whole,
    whole_json,
    whole_problem,
)
from rollcage.gateway.ports import Parts
from rollcage.gateway.problems import INTERNAL, Problem
from rollcage.gateway.tenants import Tenant
from rollcage.grading.desk import Request
from rollcage.grading.errors import NoGrader
from rollcage.rollouts.actions import Action, Answer
from rollcage.telemetry.labels import DialectLabel, LimitLabel, status_label
from rollcage.telemetry.logs import about

# Probes are nobody's training, so they count into no run's health but their own.
PROBES = "probes"

_log = structlog.get_logger()


class AgentRft:
    """The routes below ``/agent-rft/``."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._body_bytes = parts.limits.rft_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        asked = _asked(scope)
        if asked.address and asked.address.task is Task.TOOL:
            scope[AGAIN] = partial(self._again, asked, asked.address)
        with suppress(Gone):
            answer = await self._answered(asked, partial(read_body, scope, receive, limit=self._body_bytes))
            whole = self.whole(answer)
            await send_whole(scope, send, whole)
            self.count(whole)

    def whole(self, answer: bytes | Problem) -> Whole:
        """Return an answer as it is sent."""
        close = self._parts.admission.draining
        if isinstance(answer, Problem):
            if answer.code == BodyTooLarge.code:
                self._parts.metrics.requests_refused.at(LimitLabel.BODY).inc()
            return whole_problem(answer, close=close)
        return whole_json(answer, close=close)

    def count(self, answer: Whole) -> None:
        """Count an answer, once it is on its way."""
        self._parts.metrics.requests.at(DialectLabel.AGENT_RFT, status_label(answer.status)).inc()

    def leave(self, tenant: Tenant) -> None:
        """Let go of a request that was let in."""
        self._parts.admission.leave(tenant)

    async def output(self, call: "_Call", answer: Coroutine[Any, Any, Answer]) -> bytes | Problem:
        """Wait for a call's *answer*, and return what the trainer is told."""
        with about(rollout=call.action.rollout.name, call=call.action.call_id, run=call.action.run):
            try:
                output = (await answer).output
            except Exception as error:  # noqa: BLE001 - told here, where the log knows what it is about
                text = text_of(error)
                if text is None:
                    return _told(error)
                output = text
            finally:
                if call.is_probe:
                    await self._thrown_away(call.action)
        return call.body(output)

    def _again(self, asked: "_Asked", address: Address, body: bytes, turn: Turn) -> None:
        """Answer a further tool call whose head says the same."""
        tenant: Tenant | None = None
        try:
            tenant = self._let_in(asked)
            call = self._read(given_body(body, limit=self._body_bytes), address, tenant)
        except Exception as error:  # noqa: BLE001 - the last resort, as below
            if tenant:
                self.leave(tenant)
            refused = self.whole(_told(error))
            turn.give(refused)
            self.count(refused)
        else:
            self._parts.use_cases.start(call.action, _Asker(self, tenant, call, turn))

    async def _answered(self, asked: "_Asked", read: "_Read") -> bytes | Problem:
        try:
            return await self._served(asked, read)
        except Gone:
            raise
        except Exception as error:  # noqa: BLE001 - the last resort: an answer that the platform understands
            return _told(error)

    async def _served(self, asked: "_Asked", read: "_Read") -> bytes | Problem:
        address = asked.address
        if address is None:
            raise NoSuchRoute("the path is /agent-rft[/tokens/T][/runs/R][/environments/E]/tools[/NAME] or …/grade")
        tenant = self._let_in(asked)
        try:
            body = await read()
            if address.task is Task.GRADE:
                return await self._graded(body, address, tenant)
            call = self._read(body, address, tenant)
            return await self.output(call, self._parts.use_cases.act(call.action))
        finally:
            self.leave(tenant)

    def _let_in(self, asked: "_Asked") -> Tenant:
        """Return whose request it is; it counts as one in flight until it leaves."""
        parts = self._parts
        tenant = admitted(parts.tenants, parts.metrics, asked.token)
        if asked.method != "POST":
            raise WrongMethod("tool calls and grading are POSTed")
        parts.admission.enter(tenant)
        return tenant

    def _read(self, body: bytes, address: Address, tenant: Tenant) -> "_Call":
        call = read_call(body, address, fresh=_fresh)
        environment = self._environment(call.environment)
        if call.tool is None:
            call = only_tool(call, tool_names(environment))
        is_probe = call.rollout is None
        action = Action(
            rollout=rollout_id(tenant.name, call.rollout or f"probe-{_fresh()}"),
            run=PROBES if is_probe else address.run,
            environment=environment,
            call_id=call.call_id,
            tool=call.tool or "",
            arguments=call.arguments,
            within=self._parts.limits.rft_seconds,
            max_waiting=self._parts.limits.waiting_rollouts,
        )
        return _Call(action, call.echo, call.id, is_probe)

    async def _graded(self, body: bytes, address: Address, tenant: Tenant) -> bytes | Problem:
        asked = read_grade(body, address)
        if self._parts.graders is None:
            raise NoGrader
        request = Request(
            tenant=tenant.name,
            rollout=RolloutId(tenant.name, asked.rollout) if asked.rollout else None,
            run=address.run,
            environment=self._environment(asked.environment),
            answer=asked.answer,
            item=asked.item,
            within=self._parts.limits.rft_seconds,
        )
        with about(rollout=asked.rollout or "", run=address.run):
            try:
                return score_body((await self._parts.graders.grade(request)).score.value)
            except Exception as error:  # noqa: BLE001 - told here, where the log knows what it is about
                return _told(error)

    async def _thrown_away(self, probe: Action) -> None:
        try:
            await self._parts.use_cases.finish(probe.rollout, run=probe.run, environment=probe.environment.name)
        except RollcageError as error:
            # Its sandbox is reaped after the idle time instead; the person has the answer.
            _log.warning("probe_not_finished", code=error.code)

    def _environment(self, name: str | None) -> Environment:
        found = self._parts.environments.get(name) if name else None
        if found is None:
            raise EnvironmentUnknown(environment=_shown(name))
        return found


_Read: TypeAlias = Callable[[], Awaitable[bytes]]


@value
class _Asked:
    """What a request's head says."""

    address: Address | None
    token: str | None
    method: str


def _asked(scope: Scope) -> _Asked:
    address = read_address(scope["path"])
    # One in the path counts before one in a header: it is there because the trainer cannot send headers, or sends
    # those of somebody else.
    token = (address and address.token) or bearer(header(scope, b"authorization"))
    return _Asked(address, token, scope["method"])


@value
class _Call:
    """A tool call: what is to be done, and what its answer is told with."""

    action: Action
    echo: str
    id: str
    is_probe: bool

    def body(self, output: str) -> bytes:
        """Return the answer's body."""
        return output_body(call_id=self.echo, own_id=self.id, output=output)


class _Asker:
    """A trainer that waits for a tool call on a connection whose head is known."""

    __slots__ = ("_answer", "_call", "_route", "_tenant", "_turn")

    def __init__(self, route: AgentRft, tenant: Tenant, call: _Call, turn: Turn) -> None:
        self._route = route
        self._tenant = tenant
        self._call = call
        self._turn = turn

    def known(self, answer: Answer) -> None:
        """Write the answer, but do not send it."""
        self._answer = self._route.whole(self._call.body(answer.output))
        self._turn.ready(self._answer)

    def recorded(self) -> None:
        """Send it."""
        self._turn.give(self._answer)
        self._route.leave(self._tenant)
        self._route.count(self._answer)

    def otherwise(self, answer: Coroutine[Any, Any, Answer]) -> None:
        """Send what comes of waiting."""
        self._turn.wait(self._waited(answer))

    async def _waited(self, acting: Coroutine[Any, Any, Answer]) -> Whole:
        try:
            told = await self._route.output(self._call, acting)
        except Exception as error:  # noqa: BLE001 - the last resort, as above
            told = _told(error)
        finally:
            self._route.leave(self._tenant)
        answer = self._route.whole(told)
        self._route.count(answer)
        return answer


def _told(error: Exception) -> Problem:
    problem = refusal_of(error)
    if problem.code == INTERNAL:
        _log.error("call_broke", exc_info=error)
    else:
        _log.info("call_refused", code=problem.code, status=int(problem.status), reason=str(error))
    return problem


def _fresh() -> str:
    return secrets.token_hex(16)


def _shown(name: str | None) -> str:
    try:
        return environment_name(name or "")
    except BadId:
        return ""
