"""
Write a rollout's trajectory down where it outlives the store: JSON lines, anywhere that fsspec reaches.

The first line is the rollout with its verdict and evidence, each further line
one call in the order in which they began. The place has the whole trajectory or,
if writing fails, an error is raised.
"""

import asyncio
from dataclasses import asdict
from typing import Any, Final

import fsspec  # type: ignore[import-untyped] # it ships none
import orjson

from rollcage.core.ids import RolloutId
from rollcage.rollouts.usecases import UseCases
from rollcage.rollouts.views import RolloutVerdict

_PAGE: Final = 200


async def archive(use_cases: UseCases, rollout: RolloutId, *, to: str) -> int:
    """Write the trajectory to *to*, a path or URL, and return the number of calls; raises RolloutUnknown, OSError."""
    verdict = await use_cases.verdict(rollout)
    file = await asyncio.to_thread(lambda: fsspec.open(to, "wb", auto_mkdir=True).open())
    calls, cursor, more = 0, None, True
    try:
        await asyncio.to_thread(file.write, _line(_head(verdict)))
        while more:
            page = await use_cases.trajectory(rollout, cursor=cursor, limit=_PAGE)
            await asyncio.to_thread(file.write, b"".join(_line(asdict(step)) for step in page.items))
            calls, cursor, more = calls + len(page.items), page.cursor, page.cursor is not None
    finally:
        await asyncio.to_thread(file.close)
    return calls


def _head(verdict: RolloutVerdict) -> dict[str, Any]:
    head = asdict(verdict)
    head["evidence"] = [orjson.loads(piece) for piece in verdict.evidence]
    return head


def _line(fields: dict[str, Any]) -> bytes:
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
