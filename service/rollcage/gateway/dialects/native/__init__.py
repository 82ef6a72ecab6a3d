"""
Rollcage's own language, under ``/v1``: for SDKs, consoles, and trainers that can speak it.

Each file serves one kind of thing; ``shapes`` has what is sent and answered.
"""

from typing import Any, Final

from fastapi import APIRouter

from rollcage.gateway.dialects.native import environments, files, grading, pools, rollouts, runs
from rollcage.gateway.dialects.native.shapes import ProblemShape

_REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": ProblemShape, "description": text, "content": {"application/problem+json": {}}}
    for status, text in {
        400: "The request cannot be read.",
        401: "No token, or a wrong one.",
        404: "There is no such thing.",
        409: "The call id was used before with other arguments.",
        410: "The rollout is over.",
        413: "The body is too large.",
        415: "The body is compressed.",
        422: "The sandbox's file system does not allow it.",
        429: "The tenant's quota is used up.",
        500: "A fault of the gateway.",
        503: "The infrastructure failed, or there is no room.",
    }.items()
}


def router() -> APIRouter:
    """Return all routes below ``/v1``."""
    made = APIRouter(prefix="/v1", responses=_REFUSALS)
    for part in (rollouts, grading, files, runs, environments, pools):
        made.include_router(part.router)
    return made
