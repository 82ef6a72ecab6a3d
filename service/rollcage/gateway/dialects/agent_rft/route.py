"""
Serve Agent RFT's tool calls and grading.

Plain ASGI: every call of every rollout comes this way, and a framework's
routing and validation would take longer than all that is done here.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

import structlog

from rollcage.core.environment import Environment
from rollcage.core.errors import RollcageError
from rollcage.core.ids import BadId, RolloutId, environment_name, rollout_id
from rollcage.core.values import value
from rollcage.gateway.auth import admitted
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
from rollcage.rollouts.actions import Action
from rollcage.telemetry.labels import DialectLabel, LimitLabel, status_label
from rollcage.telemetry.logs import about

# Probes are nobody's training, so they count into no run's health but their own.
PROBES = "probes"

_log = structlog.get_logger()


class AgentRft:
    """The routes below ``/agent-rft/``."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens."""
        asked = _Asked(read_address(scope["path"]), header(scope, b"authorization"), scope["method"])

        limit = self._parts.limits.rft_body_bytes

        async def again(body: bytes) -> Whole:
            return await self._answered(asked, partial(given_body, body, limit=limit))

        scope[AGAIN] = again
        with suppress(Gone):
            answer = await self._answered(asked, partial(read_body, scope, receive, limit=limit))
            await send_whole(scope, send, answer)

    async def _answered(self, asked: "_Asked", read: "_Read") -> Whole:
        try:
            answer = await self._served(asked, read)
        except Gone:
            raise
        except Exception as error:  # noqa: BLE001 - the last resort: an answer that the platform understands
            answer = _told(error)
        close = self._parts.admission.draining
        if isinstance(answer, Problem):
            self._count(answer.status)
            if answer.code == BodyTooLarge.code:
                self._parts.metrics.requests_refused.at(LimitLabel.BODY).inc()
            return whole_problem(answer, close=close)
        # Counted once the answer is on its way.
        asyncio.get_running_loop().call_soon(self._count, HTTPStatus.OK)
        return whole_json(answer, close=close)

    async def _served(self, asked: "_Asked", read: "_Read") -> bytes | Problem:
        parts, address = self._parts, asked.address
        if address is None:
            raise NoSuchRoute("the path is /agent-rft[/tokens/T][/runs/R][/environments/E]/tools[/NAME] or …/grade")
        tenant = admitted(parts.tenants, parts.metrics, authorization=asked.authorization, in_path=address.token)
        if asked.method != "POST":
            raise WrongMethod("tool calls and grading are POSTed")
        parts.admission.enter(tenant)
        try:
            body = await read()
            if address.task is Task.GRADE:
                return await self._graded(body, address, tenant)
            return await self._called(body, address, tenant)
        finally:
            parts.admission.leave(tenant)

    async def _called(self, body: bytes, address: Address, tenant: Tenant) -> bytes | Problem:
        call = read_call(body, address, fresh=_fresh)
        environment = self._environment(call.environment)
        if call.tool is None:
            call = only_tool(call, tool_names(environment))
        probe = call.rollout is None
        rollout = rollout_id(tenant.name, call.rollout or f"probe-{_fresh()}")
        run = PROBES if probe else address.run
        action = Action(
            rollout=rollout,
            run=run,
            environment=environment,
            call_id=call.call_id,
            tool=call.tool or "",
            arguments=call.arguments,
            within=self._parts.limits.rft_seconds,
            max_waiting=self._parts.limits.waiting_rollouts,
        )
        with about(rollout=rollout.name, call=call.call_id, run=run):
            try:
                output = (await self._parts.use_cases.act(action)).output
            except Exception as error:  # noqa: BLE001 - told here, where the log knows what it is about
                text = text_of(error)
                if text is None:
                    return _told(error)
                output = text
            finally:
                if probe:
                    await self._thrown_away(rollout, environment)
        return output_body(call_id=call.echo, own_id=call.id, output=output)

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

    async def _thrown_away(self, rollout: RolloutId, environment: Environment) -> None:
        try:
            await self._parts.use_cases.finish(rollout, run=PROBES, environment=environment.name)
        except RollcageError as error:
            # Its sandbox is reaped after the idle time instead; the person has the answer.
            _log.warning("probe_not_finished", code=error.code)

    def _environment(self, name: str | None) -> Environment:
        found = self._parts.environments.get(name) if name else None
        if found is None:
            raise EnvironmentUnknown(environment=_shown(name))
        return found

    def _count(self, status: int) -> None:
        self._parts.metrics.requests.at(DialectLabel.AGENT_RFT, status_label(status)).inc()


_Read: TypeAlias = Callable[[], Awaitable[bytes]]


@value
class _Asked:
    """What a request's head says."""

    address: Address | None
    authorization: str | None
    method: str


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
