"""
A stand-in for the API server, for what a real one cannot be made to do on demand.

Real HTTP on a real socket, through the real client; only the answers are
scripted. It plays them in order and notes what was asked.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web

from rollcage.sandboxes.kubernetes.api import Api, connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Answer:
    """An answer to give: JSON, or events that end with the connection."""

    body: Json | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    events: list[Json] | None = None
    stays_open: bool = False
    breaks: bool = False


class ScriptedApiServer:
    """Plays answers in order; after the last one it never answers."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Asked] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        asked = Asked(request.method, request.path, dict(request.query), json.loads(body) if body else None)
        self.asked.append(asked)
        if not self.answers:
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if answer.events is None:
            return web.json_response(answer.body, status=answer.status, headers=answer.headers)
        response = web.StreamResponse()
        await response.prepare(request)
        for event in answer.events:
            await response.write(json.dumps(event).encode() + b"\n")
        if answer.breaks:
            assert request.transport is not None
            request.transport.close()
        if answer.stays_open:
            await asyncio.Event().wait()
        return response

    @asynccontextmanager
    async def served(self, tmp_path: Path) -> AsyncIterator[Api]:
        """Lend a client that talks to it."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self.handle)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            host, port = runner.addresses[0][:2]
            async with connected(_kubeconfig(tmp_path, f"http://{host}:{port}")) as api:
                yield api
        finally:
            await runner.cleanup()


def _kubeconfig(folder: Path, address: str) -> Path:
    file = folder / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scripted", "cluster": {"server": address}}],
        "users": [{"name": "tester", "user": {"token": "t"}}],
        "contexts": [{"name": "scripted", "context": {"cluster": "scripted", "user": "tester"}}],
        "current-context": "scripted",
    }
    file.write_text(json.dumps(content))
    return file


def failure(code: int, reason: str = "", message: str = "", **headers: str) -> Answer:
    """Return a refusal as the API server writes it."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message}
    return Answer(body, status=code, headers={name.replace("_", "-"): value for name, value in headers.items()})


def listed(*objects: Json, version: str = "100", rest: str = "") -> Answer:
    """Return a page of a list."""
    return Answer({"items": list(objects), "metadata": {"resourceVersion": version, "continue": rest}})


def event(kind: str, object_: Json, version: str) -> Json:
    """Return an event of a watch."""
    metadata = {**object_.get("metadata", {}), "resourceVersion": version}
    return {"type": kind, "object": {**object_, "metadata": metadata}}


EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
