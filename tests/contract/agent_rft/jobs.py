"""
Set a job up over a gateway as a person does: with the list of tools that the gateway itself prints.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from contract.agent_rft.platform import PATIENCE, Job
from support.gateways import BEARER, TOKEN, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.gateway.ports import Parts

RUN = "ftjob-4e1f"
# As people write it into a job.
HEADERS = {"Authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def open_job(made: Parts, *, patience: float = PATIENCE) -> AsyncIterator[Job]:
    """Serve a gateway and set a job up on it."""
    async with listening(made) as base, httpx.AsyncClient(timeout=None, base_url=base) as http:  # noqa: S113
        printed = await http.get("/v1/environments/small/tools", params={"form": "job", "run": RUN}, headers=BEARER)
        tools = {tool["name"]: {**tool, "headers": HEADERS} for tool in printed.json()["tools"]}
        # Its endpoint may get no headers at all, so its address has the token.
        grader = {
            "type": "endpoint",
            "url": f"{base}/agent-rft/tokens/{TOKEN}/runs/{RUN}/environments/small/grade",
            "headers": {},
        }
        yield Job(http, tools, grader, patience)
