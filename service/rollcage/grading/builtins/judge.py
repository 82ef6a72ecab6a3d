"""
Ask a judge, usually a model, over HTTP; one that cannot be asked, or answers nonsense, is a refusal.
"""

import asyncio
import json
import math
import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.graders import JudgeGrader
from rollcage.grading.protocol import Context, Refused, Score

if TYPE_CHECKING:
    import httpx

# A score and a few words.
_MOST_BYTES: Final = 1 << 20
_FIRST_PAUSE: Final = 0.5
_WORTH_ANOTHER_TRY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class _Again(Exception):
    pass


async def judge_score(grader: JudgeGrader, context: Context) -> Score:
    """Return what the judge says, or raise Refused."""
    # Worth a third of a worker's start, and seldom needed.
    import httpx  # noqa: PLC0415

    headers = {name: _secret(variable) for name, variable in grader.headers.items()}
    body = json.dumps(question(context)).encode()
    reason = ""
    async with httpx.AsyncClient(timeout=grader.timeout_seconds, headers=headers) as client:
        for attempt in range(grader.tries):
            if attempt:
                await asyncio.sleep(_FIRST_PAUSE * 2**attempt)
            try:
                return _score(await _asked(client, grader.url, body), grader.field)
            except (_Again, httpx.TransportError) as trouble:
                reason = str(trouble) or type(trouble).__name__
    raise Refused(f"the judge did not answer: {reason}")


def question(context: Context) -> dict[str, Any]:
    """Return what a judge is shown: the sample as trainers send it, the item, and the calls that were made."""
    return {
        "sample": {"output_text": context.answer.text, "output_json": context.answer.json},
        "item": context.item,
        "trajectory": [
            {"tool": one.tool, "arguments": one.arguments, "outcome": one.outcome, "output": one.output}
            for one in context.trajectory
        ],
    }


async def _asked(client: "httpx.AsyncClient", url: str, body: bytes) -> bytes:
    async with client.stream("POST", url, content=body, headers={"content-type": "application/json"}) as answer:
        if answer.status_code in _WORTH_ANOTHER_TRY:
            raise _Again(f"status {answer.status_code}")
        if answer.status_code != HTTPStatus.OK:
            raise Refused(f"the judge answered with status {answer.status_code}")
        content = b""
        async for piece in answer.aiter_bytes():
            content += piece
            if len(content) > _MOST_BYTES:
                raise Refused("the judge's answer is too large")
        return content


def _score(content: bytes, field: str) -> Score:
    try:
        answer = json.loads(content)
        value = answer
        for name in field.split("."):
            value = value[name]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Refused(f"the judge's answer has no {field}") from None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Refused("the judge's score is no number")
    reason = answer.get("reason")
    return Score(float(value), notes=(reason,) if isinstance(reason, str) and reason else ())


def _secret(variable: str) -> str:
    try:
        return os.environ[variable]
    except KeyError:
        raise Refused(f"the variable {variable} is not set") from None
