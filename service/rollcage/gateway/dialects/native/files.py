"""
Files and directories of a rollout's sandbox, streamed in and out.

The sandbox is there from the rollout's first call until its end.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import StreamingResponse

from rollcage.gateway.dialects.native.access import GivenParts, GivenRollout
from rollcage.gateway.dialects.native.shapes import FileWritten, TreeWritten
from rollcage.rollouts.transfers import Transfer, begun, pieces, size_of

router = APIRouter(prefix="/rollouts/{rollout}", tags=["files"])

_FILE, _TREE = "application/octet-stream", "application/x-tar"
_BYTES: Final[dict[str, Any]] = {"type": "string", "format": "binary"}


async def _stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


# Closed after the answer is sent, also if nobody came to fetch it.
GivenStack = Annotated[AsyncExitStack, Depends(_stack)]
GivenPath = Annotated[
    str, Query(min_length=1, max_length=4096, description="Absolute, or relative to the work directory.")
]


def _answers(media: str) -> dict[int | str, dict[str, Any]]:
    return {200: {"content": {media: {"schema": _BYTES}}}}


def _takes(media: str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {media: {"schema": _BYTES}}}}


@router.get("/files", summary="Download a file", response_class=StreamingResponse, responses=_answers(_FILE))
async def download(rollout: GivenRollout, parts: GivenParts, stack: GivenStack, path: GivenPath) -> StreamingResponse:
    """Stream a regular file out of the sandbox."""
    response = await begun(stack, await parts.use_cases.reach(rollout), Transfer("GET", "/v1/files", path))
    return StreamingResponse(pieces(response), media_type=_FILE, headers=size_of(response))


@router.put("/files", summary="Upload a file", openapi_extra=_takes(_FILE))
async def upload(
    rollout: GivenRollout, parts: GivenParts, stack: GivenStack, path: GivenPath, request: Request
) -> FileWritten:
    """Stream a file into the sandbox; what was there is replaced."""
    transfer = Transfer("PUT", "/v1/files", path, request.stream(), request.headers.get("content-length"))
    response = await begun(stack, await parts.use_cases.reach(rollout), transfer)
    return FileWritten.model_validate_json(await response.read())


@router.get("/tree", summary="Download a directory", response_class=StreamingResponse, responses=_answers(_TREE))
async def download_tree(
    rollout: GivenRollout, parts: GivenParts, stack: GivenStack, path: GivenPath
) -> StreamingResponse:
    """Stream a directory out of the sandbox as a tar archive."""
    response = await begun(stack, await parts.use_cases.reach(rollout), Transfer("GET", "/v1/tree", path))
    return StreamingResponse(pieces(response), media_type=_TREE, headers=size_of(response))


@router.put("/tree", summary="Upload a directory", openapi_extra=_takes(_TREE))
async def upload_tree(
    rollout: GivenRollout, parts: GivenParts, stack: GivenStack, path: GivenPath, request: Request
) -> TreeWritten:
    """Stream a tar archive into a directory of the sandbox."""
    transfer = Transfer("PUT", "/v1/tree", path, request.stream(), request.headers.get("content-length"))
    response = await begun(stack, await parts.use_cases.reach(rollout), transfer)
    return TreeWritten.model_validate_json(await response.read())
