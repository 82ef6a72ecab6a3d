"""Scores that are really given: by built-ins and by a team's functions, recorded, and refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause, Word
from rollcage.store.records import Subject, Verdict
from support.gateways import THEIRS
from support.grading import function

if TYPE_CHECKING:
    from pathlib import Path

    from support.grading import Grader

NUMBER = {"kind": "number", "expected": "item.answer", "close": {"within": 0.05}}
ITEM = {"id": "q-17", "answer": "7%"}


async def ended(grader: Grader, word: Word, cause: Cause) -> None:
    subject = Subject.of(RolloutId("ours", "trace_1"), run="run-1", environment="small")
    await grader.stage.store.rollouts.end(subject, Verdict(word, by="controller", cause=cause))


async def test_a_trainer_gets_a_score(grader: Grader) -> None:
    grader.use(NUMBER)
    await grader.stage.sandbox("sbx-1")
    await grader.shell("true")
    assert await grader.grade("It is 0.07.", ITEM) == 1.0


async def test_grading_ends_the_rollout_and_frees_its_sandbox(grader: Grader) -> None:
    grader.use(NUMBER)
    await grader.stage.sandbox("sbx-1")
    await grader.shell("true")
    await grader.grade("0.07", ITEM)
    assert "over" in await grader.shell("echo late")
    assert await grader.stage.store.pools.spent("small") == ("sbx-1",)


@pytest.mark.parametrize("path", ["/agent-rft/grade", "/agent-rft/environments/small/grade"])
async def test_a_person_can_try_the_grader_without_a_rollout(grader: Grader, path: str) -> None:
    grader.use(NUMBER)
    item = {**ITEM, "environment": "small"}
    reply = await grader.ask("POST", path, {"sample": {"output_text": "8"}, "item": item})
    assert reply.json() == {"score": 0.0}


async def test_a_masked_rollout_is_never_graded(grader: Grader) -> None:
    grader.use(NUMBER)
    server = await grader.stage.sandbox("sbx-1")
    await grader.shell("true")
    server.process.kill()
    server.process.wait()
    body = {"name": "shell", "arguments": {"command": "true"}, "trace_id": "trace_1"}
    await grader.ask("POST", "/agent-rft/runs/run-1/environments/small/tools", body)
    assert await grader.grade("0.07", ITEM) == (503, "masked")
    assert (await grader.ask("GET", "/v1/rollouts/trace_1")).json()["score"] is None


async def test_an_abandoned_rollout_is_not_graded(grader: Grader) -> None:
    grader.use(NUMBER)
    await ended(grader, Word.ABANDONED, Cause.TRAINER_SILENT)
    assert await grader.grade("0.07", ITEM) == (503, "rollout_abandoned")


async def test_a_model_that_ended_its_own_sandbox_is_graded_all_the_same(grader: Grader) -> None:
    grader.use(function("looks_at_artifacts"), artifacts=["src"])
    await grader.stage.sandbox("sbx-1")
    await grader.shell("mkdir src; touch src/a")
    await ended(grader, Word.TRAINABLE, Cause.OUT_OF_MEMORY)
    assert await grader.grade() == 0.0
    assert (await grader.ask("GET", "/v1/rollouts/trace_1/score")).json()["notes"] == ["src"]


async def test_a_rollout_that_made_no_call_is_graded_on_its_answer(grader: Grader) -> None:
    grader.use(NUMBER)
    assert await grader.grade("7", ITEM) == 1.0
    shown = (await grader.ask("GET", "/v1/rollouts/trace_1")).json()
    assert (shown["score"], shown["item"], shown["verdict"]["word"]) == (1.0, "q-17", "trainable")


async def test_an_environment_may_refuse_rollouts_that_made_no_call(grader: Grader) -> None:
    grader.use(NUMBER, withoutCalls=False)
    assert await grader.grade("7", ITEM) == (503, "rollout_unknown")


async def test_grading_twice_gives_the_recorded_score(grader: Grader, tmp_path: Path) -> None:
    grader.use(function("counts_itself", note=str(tmp_path / "note")))
    assert [await grader.grade() for _ in range(3)] == [0.1, 0.1, 0.1]


async def test_a_regrade_replaces_the_score_and_the_run_counts_the_rollout_once(grader: Grader, tmp_path: Path) -> None:
    grader.use(function("counts_itself", note=str(tmp_path / "note")))
    await grader.grade()
    body = {"answer": {"text": ""}, "regrade": True}
    again = (await grader.ask("POST", "/v1/rollouts/trace_1/grade", body)).json()
    assert (again["score"], again["replayed"]) == (0.2, False)
    assert await grader.grade() == 0.2
    (run,) = (await grader.ask("GET", "/v1/runs")).json()["runs"]
    assert (run["graded"], run["mean_score"]) == (1, 0.2)


async def test_a_score_is_not_given_for_another_answer(grader: Grader) -> None:
    grader.use(NUMBER)
    assert await grader.grade("7", ITEM) == 1.0
    assert await grader.grade("8", ITEM) == (503, "grade_conflict")


async def test_parts_and_notes_are_recorded_and_shown(grader: Grader) -> None:
    grader.use(function("awaited"))
    await grader.stage.sandbox("sbx-1")
    await grader.shell("true")
    asked = {"answer": {"text": "x"}, "item": {"id": 3}}
    given = (await grader.ask("POST", "/v1/rollouts/trace_1/grade", asked)).json()
    assert (given["score"], given["parts"], given["notes"]) == (0.5, {"calls": 1.0}, ["item 3"])
    shown = (await grader.ask("GET", "/v1/rollouts/trace_1/score")).json()
    assert shown == {**given, "replayed": True, "seconds": shown["seconds"]}
    listed = (await grader.ask("GET", "/v1/rollouts")).json()["rollouts"]
    assert [(one["score"], one["item"]) for one in listed] == [(0.5, "3")]


async def test_a_native_answer_nested_without_end_is_an_answer_too(grader: Grader) -> None:
    grader.use(NUMBER)
    asked = {"answer": {"text": "7", "json": json.loads("[" * 300 + "]" * 300)}, "item": ITEM, "environment": "small"}
    assert (await grader.ask("POST", "/v1/rollouts/trace_1/grade", asked)).json()["score"] == 1.0


async def test_scores_are_counted(grader: Grader) -> None:
    grader.use(NUMBER)
    await grader.grade("7", ITEM)
    text = grader.metrics.exposition().decode()
    assert 'rollcage_grades_total{environment="small",outcome="scored"} 1.0' in text
    assert 'rollcage_scores_sum{environment="small"} 1.0' in text


async def test_an_environment_without_a_grader_says_so(grader: Grader) -> None:
    assert await grader.grade("7") == (503, "no_grader")


async def test_what_the_item_lacks_is_a_refusal_and_no_zero(grader: Grader) -> None:
    grader.use(NUMBER)
    assert await grader.grade("7", {"id": "q-1"}) == (503, "grader_refused")


async def test_nobody_reads_or_grades_another_tenants_rollout(grader: Grader) -> None:
    grader.use(NUMBER)
    await grader.grade("7", ITEM)
    as_them = {"authorization": f"Bearer {THEIRS}"}
    assert (await grader.ask("GET", "/v1/rollouts/trace_1/score", headers=as_them)).status == 404
    asked = {"answer": {"text": "8"}}
    assert (await grader.ask("POST", "/v1/rollouts/trace_1/grade", asked, headers=as_them)).status == 404


@pytest.mark.parametrize("body", [b"{}", b"[]", b"not json", b'{"sample": 3}', b'{"sample": {}, "trace_id": "../x"}'])
async def test_what_cannot_be_read_changes_nothing(grader: Grader, body: bytes) -> None:
    grader.use(NUMBER)
    reply = await grader.ask("POST", "/agent-rft/environments/small/grade", body)
    assert reply.status == 400
    assert (await grader.ask("GET", "/v1/rollouts")).json()["rollouts"] == []


@pytest.mark.parametrize(
    "sample",
    [
        {"output_text": None, "choices": [{"message": {"content": "7"}}]},
        {"output_text": "7", "output_json": json.loads("[" * 200 + "]" * 200)},
        {"output_text": "7 \ud800"},
    ],
    ids=["only choices", "JSON nested without end", "half a surrogate"],
)
async def test_odd_answers_are_answers(grader: Grader, sample: Any) -> None:
    grader.use(NUMBER)
    assert await grader.grade(item=ITEM, sample=sample) == 1.0
