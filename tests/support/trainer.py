"""
A trainer that speaks Agent RFT to gateways that are processes of their own.
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN = "cluster-0123456789abcdefghijklmnopqrstuvwxyz"  # noqa: S105 - made up
SECONDS = aiohttp.ClientTimeout(total=120)
BASE = "/agent-rft/runs/step/environments/pool"


class Trainer:
    """Calls tools as the platform does: any gateway, up to three more times on a 5xx."""

    def __init__(self, session: aiohttp.ClientSession, ports: list[int]) -> None:
        self._session = session
        self.ports = ports

    async def call(self, trace: str, call_id: str, command: str, *, port: int | None = None) -> tuple[int, Any]:
        """Run a command."""
        return await self.tool(trace, call_id, "shell", {"command": command}, port=port)

    async def tool(
        self, trace: str, call_id: str, name: str, arguments: Mapping[str, Any], *, port: int | None = None
    ) -> tuple[int, Any]:
        body = {
            "type": "function_call",
            "id": f"fc_{call_id}",
            "call_id": call_id,
            "name": name,
            "arguments": json.dumps(arguments),
            "trace_id": trace,
        }
        status, answer = 0, None
        for attempt in range(4):
            at = port if port and attempt == 0 else self.ports[attempt % len(self.ports)]
            try:
                status, answer = await self.ask("POST", f"{BASE}/tools", body, port=at)
            except (aiohttp.ClientError, TimeoutError):
                continue
            if status < 500:
                break
            await asyncio.sleep(0.5)
        return status, answer

    async def grade(self, trace: str, item: Mapping[str, Any]) -> tuple[int, Any]:
        """Ask for a score, once."""
        sample = {"output_text": "", "output_json": None}
        return await self.ask("POST", f"{BASE}/grade", {"sample": sample, "item": item, "trace_id": trace})

    async def ask(self, method: str, path: str, body: Any = None, *, port: int | None = None) -> tuple[int, Any]:
        url = f"http://127.0.0.1:{port or self.ports[0]}{path}"
        async with self._session.request(method, url, json=body) as answer:
            return answer.status, await answer.json(content_type=None)

    async def serving(self, port: int) -> bool:
        try:
            return (await self.ask("GET", "/readyz", port=port))[0] == 200
        except aiohttp.ClientError:
            return False


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
