"""
A stand-in for the training platform: calls what a job names, retries as it retries, shows the model what it shows.

After the published contract. A 200's output goes to the model, and so does the
body of a 4xx; a 5xx, like a connection that breaks, is tried again, three times,
and then the whole rollout is thrown away. Answers above a megabyte are a 413 to
the model. Nobody waits longer than ten minutes. A grader that fails in whatever
way is tried again as often.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

RETRIES = 3
LARGEST = 1_000_000
PATIENCE = 600.0


class Discarded(Exception):
    """The platform threw the rollout away: nothing of it is trained on."""


class TimedOut(Exception):
    """The platform waited as long as it waits for anybody."""


@dataclass(frozen=True)
class Job:
    """What a fine-tuning job was given: where each tool is called, and with which headers; where scores come from."""

    http: httpx.AsyncClient
    tools: Mapping[str, Mapping[str, Any]]
    grader: Mapping[str, Any] = field(default_factory=dict)
    patience: float = PATIENCE

    async def ask_tool(self, request: Mapping[str, Any]) -> httpx.Response:
        """Ask a tool's endpoint once."""
        tool = self.tools[request["name"]]
        return await self.post(tool["server_url"], tool.get("headers", {}), request)

    async def ask_grader(self, request: Mapping[str, Any]) -> httpx.Response:
        """Ask the grader's endpoint once."""
        return await self.post(self.grader["url"], self.grader.get("headers", {}), request)

    async def post(self, url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> httpx.Response:
        """Send JSON with the headers that the job has, and wait as long as the platform does."""
        try:
            async with asyncio.timeout(self.patience):
                return await self.http.post(url, json=body, headers=dict(headers))
        except TimeoutError:
            raise TimedOut from None


@dataclass
class Trained:
    """One rollout as the platform drives it, and everything that its model was shown."""

    job: Job
    trace_id: str
    item: dict[str, Any] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    attempts: int = 0
    _calls: int = 0

    def request(self, name: str, arguments: Any) -> dict[str, Any]:
        """Write the next call down as the platform sends it."""
        self._calls += 1
        return {
            "type": "function_call",
            "id": f"fc_{self._calls:048x}",
            "call_id": f"call_{self._calls:024}",
            "name": name,
            # As the model wrote them: a text, which need not be JSON.
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            "trace_id": self.trace_id,
            "item": self.item,
        }

    async def call(self, name: str, arguments: Any) -> str:
        """Call a tool as the model asked, and return what the model is shown."""
        return await self.send(self.request(name, arguments))

    async def calls(self, *calls: tuple[str, Any]) -> list[str]:
        """Call several tools at once, as models do."""
        return await asyncio.gather(*(self.call(name, arguments) for name, arguments in calls))

    async def send(self, request: dict[str, Any]) -> str:
        """Make a call, again if it must be."""
        reason = ""
        for _ in range(1 + RETRIES):
            self.attempts += 1
            try:
                reply = await self.job.ask_tool(request)
            except httpx.TransportError as broken:
                reason = repr(broken)
                continue
            if reply.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
                return self._show(request, reply)
            reason = reply.text
        raise Discarded(reason)

    async def grade(self, sample: Any) -> float:
        """Ask for the rollout's score, again if it must be."""
        request = {"sample": sample, "item": self.item, "trace_id": self.trace_id}
        for _ in range(1 + RETRIES):
            self.attempts += 1
            reply = await self.job.ask_grader(request)
            if reply.status_code == HTTPStatus.OK:
                score = reply.json()["score"]
                assert isinstance(score, float)
                return score
        raise Discarded(reply.text)

    def _show(self, request: dict[str, Any], reply: httpx.Response) -> str:
        if len(reply.content) > LARGEST:
            text = "413"
        elif reply.status_code == HTTPStatus.OK:
            assert reply.headers["content-type"] == "application/json"
            answer = reply.json()
            assert answer["type"] == "function_call_output"
            assert (answer["call_id"], answer["id"]) == (request["call_id"], request["id"])
            text = answer["output"]
            assert isinstance(text, str)
        else:
            text = reply.text
        self.shown.append(text)
        return text
