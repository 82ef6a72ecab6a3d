"""
Let somebody watch a call while it runs.

The call is made by ``act`` like every call, and its result is the recorded
one. Watching joins it only once its sandbox knows it, under the same id, so it
can neither start a call nor start it twice; whoever watches may miss the very
beginning, which is then said as a gap. Trouble with watching is no trouble
with the call: the result comes all the same.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from http import HTTPStatus
from typing import Any, Final

import aiohttp
import orjson

from rollcage.core.errors import RollcageError
from rollcage.gateway.ports import UseCases
from rollcage.gateway.problems import problem_of
from rollcage.rollouts.actions import Action, Answer, prepare
from rollcage.rollouts.routes import Reach
from rollcage.rollouts.transfers import way

# Between two looks whether the sandbox knows the call yet: a person watches, and nothing tells us.
_LOOK_AGAIN: Final = 0.02

_TIMES: Final = aiohttp.ClientTimeout(total=None, connect=5, sock_connect=5, sock_read=30)

# One event is one line, and the last of them holds a whole result.
_LONGEST_LINE: Final = 4 << 20

_SHOWN: Final = frozenset({b"output", b"gap"})


def watched(use_cases: UseCases, action: Action) -> AsyncIterator[bytes]:
    """
    Make a call and yield server-sent events: output and gaps as they come, then the result or an error.

    What is wrong with the action itself is raised at once.
    """
    return _events(use_cases, action, prepare(action).body)


def shown(action: Action, answer: Answer) -> dict[str, Any]:
    """Return a call's answer as ``/v1`` has it."""
    return {
        "call_id": action.call_id,
        "outcome": answer.outcome,
        "output": answer.output,
        "data": answer.data,
        "facts": answer.facts,
        "replayed": answer.replayed,
        "ended": answer.ended,
    }


async def _events(use_cases: UseCases, action: Action, body: bytes) -> AsyncIterator[bytes]:
    call = asyncio.create_task(use_cases.act(action))
    try:
        # Whatever goes wrong here, the result tells the rest.
        with suppress(aiohttp.ClientError, TimeoutError, OSError, ValueError):
            async for event in _while_it_runs(use_cases, action, body, call):
                yield event
        try:
            yield _event(b"result", shown(action, await call))
        except RollcageError as error:
            yield _event(b"error", problem_of(error).body())
    finally:
        # Nobody watches any more; the call itself runs on in its sandbox and is recorded.
        call.cancel()


async def _while_it_runs(
    use_cases: UseCases, action: Action, body: bytes, call: asyncio.Task[Answer]
) -> AsyncIterator[bytes]:
    while not call.done():
        try:
            reach = await use_cases.reach(action.rollout)
        except RollcageError:
            # Not bound yet, or over.
            await asyncio.wait({call}, timeout=_LOOK_AGAIN)
            continue
        async with AsyncExitStack() as stack:
            host, connector = way(reach.address)
            session = await stack.enter_async_context(
                aiohttp.ClientSession(host, connector=connector, timeout=_TIMES, read_bufsize=_LONGEST_LINE)
            )
            if await _known(session, reach, action.call_id, call):
                async for event in _joined(session, reach, body):
                    yield event
            return


async def _known(session: aiohttp.ClientSession, reach: Reach, call_id: str, call: asyncio.Task[Answer]) -> bool:
    """Wait until the sandbox runs the call; False if it has ended before that was seen."""
    while not call.done():
        async with session.get(f"/v1/calls/{call_id}", headers=reach.headers) as response:
            if response.status == HTTPStatus.ACCEPTED:
                return True
            if response.status != HTTPStatus.NOT_FOUND:
                return False
        await asyncio.wait({call}, timeout=_LOOK_AGAIN)
    return False


async def _joined(session: aiohttp.ClientSession, reach: Reach, body: bytes) -> AsyncIterator[bytes]:
    headers = {**reach.headers, "Content-Type": "application/json"}
    async with session.post("/v1/calls/stream", data=body, headers=headers) as response:
        if response.status != HTTPStatus.OK:
            return
        name = b""
        async for line in response.content:
            field, _, value = line.rstrip(b"\n").partition(b": ")
            if field == b"event":
                name = value
            elif field == b"data" and name in _SHOWN:
                yield b"event: %b\ndata: %b\n\n" % (name, value)
            elif not field and value:
                # A comment, so that nobody on the way takes the connection for dead.
                yield b": %b\n\n" % value


def _event(name: bytes, data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name, orjson.dumps(data))
