"""
A stand-in for the client with which OpenAI's example tries tools and grader before a job is started.

After the published example. It reaches the endpoints through the platform, which
forwards: once, without a retry. Every call has the model's call id but one and
the same id; arguments are taken apart and written anew; at most eight tools run
at a time. The output is read from the answer, or from its ``result``. Whatever
fails ends the sample, and it counts as minus one: so nothing that a model does may
fail, not even as a 4xx.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    import httpx

    from contract.agent_rft.platform import Job

AT_ONCE = 8

# What it tells all endpoints, before a job's own headers.
HEADERS = {"Accept": "application/json", "Content-Type": "application/json"}

# The same for every call of every rollout.
OWN_ID = "tmp_user_id"

# Names that its functions keep to themselves: a tool with such an argument could not be tried.
KEPT_NAMES = frozenset({"item", "trace_id", "user_id", "call_id", "verbose", "auth_bearer", "headers", "payload_extra"})


class Failed(Exception):
    """The sample is over; it counts as minus one."""


@dataclass
class Preflight:
    """One sample of the dataset, tried through the platform."""

    job: Job
    item: dict[str, Any]
    # How the platform hands a tool's answer back: as it is, or inside of another.
    wrapped: bool = False
    trace_id: str = field(default_factory=lambda: f"trace_{uuid4().hex}")

    async def turn(self, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """Make the calls of one turn, and return what the model is told of each, in their order."""
        places = asyncio.Semaphore(AT_ONCE)

        async def one(name: str, arguments: dict[str, Any]) -> str:
            async with places:
                return await self._call(name, arguments)

        return await asyncio.gather(*(one(name, arguments) for name, arguments in calls))

    async def grade(self, answer: str) -> float:
        """Ask for the score of a final answer; only its text reaches the platform, which makes a sample of it."""
        reply = await self.job.post(
            self.job.grader["url"],
            {**HEADERS, **self.job.grader["headers"]},
            {"sample": sample_of(answer, ()), "item": self.item, "trace_id": self.trace_id},
        )
        score = _whole(reply)["score"]
        assert isinstance(score, float)
        return score

    async def _call(self, name: str, arguments: dict[str, Any]) -> str:
        assert not arguments.keys() & KEPT_NAMES
        tool, call_id = self.job.tools[name], f"call_{uuid4().hex[:24]}"
        # In its order; where to, and the headers, are for the platform.
        request = {
            "type": "function_call",
            "name": name,
            "arguments": json.dumps(arguments),
            "item": self.item,
            "trace_id": self.trace_id,
            "id": OWN_ID,
            "call_id": call_id,
        }
        reply = await self.job.post(tool["server_url"], {**HEADERS, **tool["headers"]}, request)
        answer = {"result": _whole(reply)} if self.wrapped else _whole(reply)
        output = answer["output"] if "output" in answer else answer.get("result", {}).get("output")
        assert isinstance(output, str)
        return output


def sample_of(answer: str | None, calls: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    """Return a final answer as graders get it: a chat completion, and its parts beside it."""
    try:
        parsed = json.loads(answer or "")
    except ValueError:
        parsed = None
    message = {"role": "assistant", "content": answer, "tool_calls": list(calls)}
    return {
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "output_text": answer,
        "output_json": parsed,
        "output_tools": list(calls),
    }


def _whole(reply: httpx.Response) -> dict[str, Any]:
    if reply.status_code >= HTTPStatus.BAD_REQUEST:
        raise Failed(f"{reply.status_code}: {reply.text}")
    answer: dict[str, Any] = reply.json()
    return answer
