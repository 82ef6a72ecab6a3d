"""
A stand-in for the training platform: sends what it sends, retries as it retries, shows the model what it shows.

After the published contract: a 200's output and a 4xx's body go to the model;
a 5xx is tried again, three times, and then the whole rollout is thrown away.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.gateways import Reply

RETRIES = 3
LARGEST_ANSWER = 1_000_000


class Discarded(Exception):
    """The platform threw the rollout away: nothing of it is trained on."""


@dataclass
class Trained:
    """One rollout as the platform drives it, and everything that its model was shown."""

    post: Callable[[dict[str, Any]], Awaitable[Reply]]
    trace_id: str
    item: dict[str, Any] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    attempts: int = 0
    _calls: int = 0

    async def call(self, name: str, arguments: Any) -> str:
        """Call a tool as the model asked, and return what the model is shown."""
        self._calls += 1
        request = {
            "type": "function_call",
            "id": f"fc_{self._calls:08}",
            "call_id": f"call_{self._calls:08}",
            "name": name,
            "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            "trace_id": self.trace_id,
            "item": self.item,
        }
        for _ in range(1 + RETRIES):
            self.attempts += 1
            reply = await self.post(request)
            if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return self._show(request, reply)
        raise Discarded(reply.body.decode())

    async def calls(self, *calls: tuple[str, Any]) -> list[str]:
        """Call several tools at once, as models do."""
        return await asyncio.gather(*(self.call(name, arguments) for name, arguments in calls))

    def _show(self, request: dict[str, Any], reply: Reply) -> str:
        if len(reply.body) > LARGEST_ANSWER:
            text = "413"
        elif reply.status == HTTPStatus.OK:
            answer = reply.json()
            assert answer["type"] == "function_call_output"
            assert (answer["call_id"], answer["id"]) == (request["call_id"], request["id"])
            text = answer["output"]
            assert isinstance(text, str)
        else:
            text = reply.body.decode()
        self.shown.append(text)
        return text
