from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from rollcage.client import AsyncClient
from rollcage.client.errors import ServiceFault
from rollcage.reports.gathering import gathered

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HEALTH: dict[str, Any] = {
    "run": "run-1",
    "advice": "proceed",
    "reasons": [],
    "causes": {},
    "masked_share": 0.0,
    **dict.fromkeys(("rollouts", "active", "ended", "masked", "calls"), 0),
}
TALLY = {"calls": 2, "repeated": 1, "outcomes": {}, "median_ms": None, "slowest_ms": None, "shown": 5}
STEP: dict[str, Any] = {
    "number": 1,
    "call_id": "c",
    "tool": "shell",
    "arguments": {},
    "outcome": None,
    "output": None,
    "data": None,
    "facts": None,
    "begun_at": "2026-01-01T00:00:00Z",
    "finished_at": None,
}


def rollout(name: str, begun_at: str | None) -> dict[str, Any]:
    place = {"rollout": name, "run": "run-1", "environment": "small", "state": "ended", "calls": 2, "placements": 0}
    return {**place, "begun_at": begun_at, "ended_at": None, "sandbox": None, "verdict": None, "tally": TALLY}


def service(trajectories: dict[str, httpx.Response]) -> AsyncClient:
    listed = [rollout("late", "2026-01-01T02:00:00Z"), rollout("never", None), rollout("early", "2026-01-01T01:00:00Z")]

    def reply(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/health"):
            return httpx.Response(200, json=HEALTH)
        if path.endswith("/rollouts"):
            return httpx.Response(200, json={"rollouts": listed, "cursor": None})
        return trajectories[path.split("/")[3]]

    return AsyncClient("http://service", "t", transport=httpx.MockTransport(reply))


def steps(*given: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"steps": list(given), "cursor": None})


def problem(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": ""})


async def test_rollouts_come_in_the_order_in_which_they_began() -> None:
    async with service({name: steps(STEP) for name in ("late", "never", "early")}) as client:
        found = await gathered(client, "run-1", trajectories=10, now=NOW)
    assert [one.rollout for one in found.rollouts] == ["never", "early", "late"]
    assert [(call.tool, call.outcome, call.seconds) for call in found.calls] == [("shell", "lost", None)] * 3


async def test_a_record_that_ended_meanwhile_is_left_out() -> None:
    gone = {"late": steps(STEP), "never": steps(), "early": problem(404, "rollout_unknown")}
    async with service(gone) as client:
        found = await gathered(client, "run-1", trajectories=10, now=NOW)
    assert (len(found.rollouts), len(found.calls)) == (3, 1)


async def test_a_service_that_fails_is_one_error() -> None:
    broken = {name: problem(500, "internal") for name in ("late", "never", "early")}
    async with service(broken) as client:
        with pytest.raises(ServiceFault):
            await gathered(client, "run-1", trajectories=10, now=NOW)
