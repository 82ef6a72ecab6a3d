"""The native API over real parts: what is done through it, and what is read back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rollcage.store.pools import Level
from support.gateways import THEIRS

if TYPE_CHECKING:
    from support.gateways import Caller
    from support.stage import Stage

SHELL = {"environment": "small", "tool": "shell", "run": "run-1"}


async def call(ask: Caller, rollout: str, command: str, **fields: Any) -> dict[str, Any]:
    reply = await ask("POST", f"/v1/rollouts/{rollout}/calls", {**SHELL, "arguments": {"command": command}, **fields})
    assert reply.status == 200, reply
    answer: dict[str, Any] = reply.json()
    return answer


async def test_a_call_is_answered_with_text_data_and_facts(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    answer = await call(ask, "r1", "echo hi; exit 3", call_id="c1")
    assert (answer["call_id"], answer["outcome"], answer["output"]) == ("c1", "failed", "hi\n[exit code 3]")
    assert answer["facts"]["exit_code"] == 3
    assert (answer["replayed"], answer["ended"]) == (False, False)


async def test_a_repeated_call_says_so(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first, again = [await call(ask, "r1", "date +%N", call_id="c1") for _ in range(2)]
    assert again == {**first, "replayed": True}


async def test_the_same_call_id_with_other_arguments_is_a_conflict(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await call(ask, "r1", "true", call_id="c1")
    reply = await ask("POST", "/v1/rollouts/r1/calls", {**SHELL, "arguments": {"command": "false"}, "call_id": "c1"})
    assert reply.code == (409, "call_conflict")


async def test_a_rollout_is_read_finished_and_keeps_its_verdict(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await call(ask, "r1", "true")
    running = (await ask("GET", "/v1/rollouts/r1")).json()
    assert (running["state"], running["calls"], running["verdict"]) == ("bound", 1, None)
    assert running["sandbox"]["name"] == "sbx-1"
    assert "address" not in running["sandbox"]

    finished = (await ask("POST", "/v1/rollouts/r1/finish")).json()
    assert (finished["state"], finished["verdict"]["word"], finished["verdict"]["cause"]) == (
        "ended",
        "trainable",
        "finished",
    )
    deleted = (await ask("DELETE", "/v1/rollouts/r1")).json()
    assert deleted["verdict"] == finished["verdict"]

    late = await ask("POST", "/v1/rollouts/r1/calls", {**SHELL, "arguments": {"command": "true"}})
    assert late.code == (410, "rollout_ended")
    shown = (await ask("GET", "/v1/rollouts/r1/verdict")).json()
    assert shown["verdict"]["word"] == "trainable"


async def test_a_rollout_that_never_made_a_call_can_be_finished_where_it_belongs(ask: Caller) -> None:
    assert (await ask("POST", "/v1/rollouts/r1/finish")).code == (404, "rollout_unknown")
    reply = await ask("POST", "/v1/rollouts/r1/finish", {"environment": "small", "run": "run-1"})
    assert reply.json()["verdict"]["word"] == "trainable"


async def test_a_masked_rollout_shows_its_evidence(ask: Caller, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await call(ask, "r1", "true")
    server.process.kill()
    server.process.wait()
    refused = await ask("POST", "/v1/rollouts/r1/calls", {**SHELL, "arguments": {"command": "true"}})
    assert refused.code == (503, "masked")
    shown = (await ask("GET", "/v1/rollouts/r1/verdict")).json()
    assert shown["verdict"]["word"] == "masked"
    assert shown["evidence"][0]["sandbox"] == "sbx-1"


async def test_a_trajectory_is_read_in_pages_and_as_lines(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    for number in range(3):
        await call(ask, "r1", f"echo {number}", call_id=f"c{number}")
    first = (await ask("GET", "/v1/rollouts/r1/trajectory?limit=2")).json()
    rest = (await ask("GET", f"/v1/rollouts/r1/trajectory?cursor={first['cursor']}")).json()
    steps = first["steps"] + rest["steps"]
    assert [(step["call_id"], step["output"]) for step in steps] == [(f"c{n}", f"{n}\n") for n in range(3)]
    assert rest["cursor"] is None
    lines = await ask("GET", "/v1/rollouts/r1/trajectory.jsonl")
    assert lines.headers["content-type"].startswith("application/x-ndjson")
    assert [json.loads(line) for line in lines.body.splitlines()] == steps


async def test_rollouts_are_listed_by_run_and_state_in_pages(ask: Caller, stage: Stage) -> None:
    for number in range(3):
        await stage.sandbox(f"sbx-{number}")
        await call(ask, f"r{number}", "true", run="run-1" if number < 2 else "run-2")
    await ask("POST", "/v1/rollouts/r0/finish")

    async def names(query: str) -> list[str]:
        return [one["rollout"] for one in (await ask("GET", f"/v1/rollouts?{query}")).json()["rollouts"]]

    assert set(await names("")) == {"r0", "r1", "r2"}
    assert set(await names("run=run-1")) == {"r0", "r1"}
    assert await names("run=run-1&label=active") == ["r1"]
    assert await names("label=ended") == ["r0"]
    page = (await ask("GET", "/v1/rollouts?limit=2")).json()
    rest = (await ask("GET", f"/v1/rollouts?limit=2&cursor={page['cursor']}")).json()
    assert len({one["rollout"] for one in page["rollouts"] + rest["rollouts"]}) == 3


async def test_one_tenant_sees_nothing_of_another(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await call(ask, "r1", "true")
    as_them = {"authorization": f"Bearer {THEIRS}"}
    assert (await ask("GET", "/v1/rollouts/r1", headers=as_them)).code == (404, "rollout_unknown")
    assert (await ask("GET", "/v1/rollouts/r1/trajectory", headers=as_them)).code == (404, "rollout_unknown")
    assert (await ask("DELETE", "/v1/rollouts/r1", headers=as_them)).code == (404, "rollout_unknown")
    assert (await ask("GET", "/v1/rollouts", headers=as_them)).json()["rollouts"] == []
    assert (await ask("GET", "/v1/runs", headers=as_them)).json()["runs"] == []


async def test_a_run_has_figures_and_a_health(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await call(ask, "r1", "false")
    await ask("POST", "/v1/rollouts/r1/finish")
    (run,) = (await ask("GET", "/v1/runs")).json()["runs"]
    assert (run["run"], run["rollouts"], run["verdicts"], run["outcomes"]) == (
        "run-1",
        1,
        {"trainable": 1},
        {"failed": 1},
    )
    health = (await ask("GET", "/v1/runs/run-1/health")).json()
    assert (health["advice"], health["masked_share"]) == ("proceed", 0.0)
    assert (await ask("GET", "/v1/runs/run-9/health")).code == (404, "run_unknown")


async def test_a_runs_rollouts_come_with_what_their_calls_add_up_to(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await call(ask, "r1", "printf 12345")
    await call(ask, "r1", "printf 12345")
    await call(ask, "r1", "false")
    page = (await ask("GET", "/v1/runs/run-1/rollouts")).json()
    (one,) = page["rollouts"]
    assert (one["rollout"], one["state"], page["cursor"]) == ("r1", "bound", None)
    tally = one["tally"]
    assert (tally["calls"], tally["repeated"], tally["outcomes"]) == (3, 1, {"ok": 2, "failed": 1})
    assert tally["shown"] == 2 * len("12345") + len("[exit code 1]")
    assert 0 <= tally["median_ms"] <= tally["slowest_ms"]
    as_them = {"authorization": f"Bearer {THEIRS}"}
    assert (await ask("GET", "/v1/runs/run-1/rollouts", headers=as_them)).json()["rollouts"] == []


async def test_pools_are_counted_over_all_tenants_and_name_nobody(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.sandbox("sbx-2")
    await call(ask, "r1", "true")
    found = (await ask("GET", "/v1/pools", headers={"authorization": f"Bearer {THEIRS}"})).json()
    (pool,) = found["pools"]
    assert (found["controller_heard"], pool["starting"]) == (False, None)
    assert (pool["environment"], pool["ready"], pool["claimed"], pool["waiting"]) == ("small", 1, 1, 0)
    assert "r1" not in str(found)
    await stage.store.as_leader(1).pools.tell({"small": Level(wanted=7, starting=2)})
    told = (await ask("GET", "/v1/pools")).json()
    assert (told["controller_heard"], told["pools"][0]["wanted"], told["pools"][0]["starting"]) == (True, 7, 2)
    assert (await ask("GET", "/v1/pools", headers={})).code == (401, "not_authorized")


async def test_sandboxes_are_reserved_within_the_quota(ask: Caller, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    path = "/v1/runs/run-1/reservations/small"
    reserved = (await ask("PUT", path, {"id": "step-1", "count": 2})).json()
    assert (reserved["count"], reserved["left"], reserved["set_aside"]) == (2, 2, 1)
    assert (await ask("PUT", path, {"id": "step-2", "count": 5000})).code == (429, "over_quota")
    assert (await ask("PUT", path.replace("small", "gone"), {"id": "s", "count": 1})).code == (
        404,
        "environment_unknown",
    )
