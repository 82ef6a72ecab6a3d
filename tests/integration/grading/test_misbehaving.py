"""Graders that crash, hang and lie: each is a refusal with its reason, and the next grading works."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.grading.workers import WorkerSettings, open_workers
from support.grading import Grader, function

if TYPE_CHECKING:
    from support.stage import Stage

REFUSED: dict[str, tuple[dict[str, Any], tuple[int, str]]] = {
    "one that raises": (function("raises"), (503, "grader_crashed")),
    "one that ends its process": (function("exits"), (503, "grader_crashed")),
    "one that exits": (function("leaves"), (503, "grader_crashed")),
    "one that breaks the interpreter": (function("segfaults"), (503, "grader_crashed")),
    "one that wants all memory": (function("eats_memory"), (503, "grader_crashed")),
    "one that is not there": (function("nobody"), (503, "grader_crashed")),
    "a module that is not there": ({"kind": "function", "function": "no.such:grader"}, (503, "grader_crashed")),
    "one that refuses": (function("refuses"), (503, "grader_refused")),
}


@pytest.mark.parametrize(("given", "code"), REFUSED.values(), ids=REFUSED)
async def test_a_grader_that_breaks_is_a_refusal(grader: Grader, given: dict[str, Any], code: tuple[int, str]) -> None:
    grader.use(given)
    assert await grader.grade() == code
    assert (await grader.ask("GET", "/v1/rollouts/trace_1")).json()["score"] is None
    grader.use(function("plain"))
    assert await grader.grade("1") == 1.0


@pytest.mark.parametrize(
    "said",
    [
        *("nan", "inf", "minus inf", "too high", "too low", "none", "a text"),
        *("a score of nothing", "a part that is no number"),
    ],
)
async def test_what_is_no_score_is_a_refusal(grader: Grader, said: str) -> None:
    grader.use(function("says"))
    status, code = await grader.grade(said)
    assert (status, code) in {(503, "score_invalid"), (503, "grader_crashed")}


async def test_a_range_may_be_wider(grader: Grader) -> None:
    grader.use(function("says"), range={"lowest": -10, "highest": 10})
    assert await grader.grade("too high") == 1.01


async def test_a_grader_that_hangs_is_ended_with_all_it_started(grader: Grader, tmp_path: Path) -> None:
    note = tmp_path / "children"
    grader.use(function("spins_with_children", note=str(note)), timeoutSeconds=3)
    assert await grader.grade() == (503, "grader_timed_out")
    assert not [child for child in note.read_text().split() if _runs(int(child))]


async def test_a_grader_may_print_what_it_likes(grader: Grader) -> None:
    grader.use(function("prints_a_lot"))
    assert await grader.grade() == 0.25


async def test_a_grader_that_breaks_does_not_tell_its_secrets(grader: Grader) -> None:
    grader.use(function("raises"))
    body = {"sample": {"output_text": ""}}
    reply = await grader.ask("POST", "/agent-rft/environments/small/grade", body)
    assert b"secret" not in reply.body
    assert reply.json()["cause"] == "ValueError"


async def test_a_worker_sees_no_variable_of_the_service_but_those_for_graders(stage: Stage) -> None:
    variables = {**os.environ, "ROLLCAGE_REDIS_URL": "x", "SECRET": "x", "GRADER_TOKEN": "x"}
    async with open_workers(WorkerSettings(paths=(Path(__file__).parent,), variables=variables)) as workers:
        grader = Grader(stage, workers)
        grader.use(function("looks_around"))
        assert await grader.grade() == 0.1
        assert (await grader.ask("GET", "/v1/rollouts/trace_1/score")).json()["notes"] == ["GRADER_TOKEN"]


async def test_gradings_at_once_do_not_meet(grader: Grader) -> None:
    grader.use(function("plain"))
    asked = [grader.grade(str(number / 40), trace_id=f"trace_{number}") for number in range(40)]
    assert await asyncio.gather(*asked) == [number / 40 for number in range(40)]


async def test_what_workers_are_made_from_may_die(grader: Grader) -> None:
    grader.use(function("kills_its_maker"))
    assert await grader.grade() == (503, "grader_crashed")
    grader.use(function("plain"))
    assert await grader.grade("1") == 1.0


async def test_no_two_graders_draw_the_same_numbers(grader: Grader) -> None:
    grader.use(function("draws"))
    drawn = [await grader.grade(trace_id=f"trace_{number}") for number in range(3)]
    assert len(set(drawn)) == 3


async def test_a_lost_sandbox_is_no_zero_even_if_the_grader_thinks_so(grader: Grader) -> None:
    grader.use(function("swallows"))
    assert await grader.grade() == (503, "grading_sandbox_failed")


def _runs(process: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
