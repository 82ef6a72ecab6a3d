"""Every rollout that ends is written down where it outlives the store."""

# A look at a file holds nobody up: the loop has nothing else to do.
# ruff: noqa: ASYNC240

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from rollcage.core.ids import RolloutId
from rollcage.rollouts.archivist import Archivist
from rollcage.telemetry.labels import ArchiveLabel
from rollcage.telemetry.metrics import Metrics
from support.stage import ENVIRONMENT, RUN, TENANT

if TYPE_CHECKING:
    from pathlib import Path

    from support.stage import Stage

ROLLOUT = RolloutId(TENANT, "r1")
AT_ONCE = timedelta(0)


def archivist(stage: Stage, place: str) -> Archivist:
    return Archivist(place, store=stage.store, use_cases=stage.use_cases, metrics=Metrics(CollectorRegistry()))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / f"tenant={TENANT}" / f"run={RUN}" / "r1.jsonl"


async def ended(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo hello")
    await stage.use_cases.finish(ROLLOUT, run=RUN, environment=ENVIRONMENT)


async def test_a_rollout_is_archived_once_it_has_ended(stage: Stage, tmp_path: Path, place: Path) -> None:
    keeper = archivist(stage, str(tmp_path))
    assert await keeper.round(rest=AT_ONCE) == 0
    await ended(stage)

    assert await keeper.round(rest=AT_ONCE) == 1

    head, step = (json.loads(line) for line in place.read_text().splitlines())
    assert (head["word"], head["cause"], step["output"]) == ("trainable", "finished", "hello\n")
    assert await keeper.round(rest=AT_ONCE) == 0


async def test_one_that_just_ended_is_left_at_rest_for_a_while(stage: Stage, tmp_path: Path) -> None:
    keeper = archivist(stage, str(tmp_path))
    await keeper.round()
    await ended(stage)

    assert await keeper.round() == 0


async def test_without_an_archive_no_list_is_kept(stage: Stage, tmp_path: Path) -> None:
    await ended(stage)

    assert await archivist(stage, str(tmp_path)).round(rest=AT_ONCE) == 0


async def test_one_that_is_graded_later_is_archived_again_with_its_score(
    stage: Stage, tmp_path: Path, place: Path
) -> None:
    keeper = archivist(stage, str(tmp_path))
    await keeper.round(rest=AT_ONCE)
    await ended(stage)
    await keeper.round(rest=AT_ONCE)

    await stage.store.scores.keep(ROLLOUT.key, score=0.5, record=b"{}", item="i1")

    assert await keeper.round(rest=AT_ONCE) == 1
    assert json.loads(place.read_text().splitlines()[0])["score"] == 0.5


async def test_a_place_that_fails_gets_it_later(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    failing = archivist(stage, str(tmp_path / "file"))
    await failing.round(rest=AT_ONCE)
    await ended(stage)

    assert await failing.round(rest=AT_ONCE) == 1

    (left,) = (await stage.store.archives.due(rest=timedelta(minutes=-20))).rollouts
    assert left == ROLLOUT.key


async def test_what_changes_while_it_is_written_is_written_again(stage: Stage, tmp_path: Path) -> None:
    await archivist(stage, str(tmp_path)).round(rest=AT_ONCE)
    await ended(stage)
    taken = await stage.store.archives.due(rest=AT_ONCE)

    await stage.store.scores.keep(ROLLOUT.key, score=1.0, record=b"{}", item="i1")
    await stage.store.archives.done(ROLLOUT.key, ticket=taken.ticket)

    assert (await stage.store.archives.due(rest=AT_ONCE)).rollouts == (ROLLOUT.key,)


async def test_names_cannot_lead_out_of_the_archive(stage: Stage, tmp_path: Path) -> None:
    keeper = archivist(stage, str(tmp_path / "archive"))
    await keeper.round(rest=AT_ONCE)
    await stage.use_cases.finish(RolloutId(TENANT, ".."), run="..", environment=ENVIRONMENT)

    assert await keeper.round(rest=AT_ONCE) == 1

    assert [path.name for path in tmp_path.iterdir()] == ["archive"]
    (written,) = (tmp_path / "archive").rglob("*.jsonl")
    assert written.name == "...jsonl"


async def test_what_was_written_and_what_failed_is_counted(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    metrics = Metrics(CollectorRegistry())
    for place in (str(tmp_path / "file"), str(tmp_path)):
        keeper = Archivist(place, store=stage.store, use_cases=stage.use_cases, metrics=metrics)
        await keeper.round(rest=AT_ONCE)
        await stage.use_cases.finish(RolloutId(TENANT, f"of-{len(place)}"), run=RUN, environment=ENVIRONMENT)
        await keeper.round(rest=AT_ONCE)

    counted = {label: metrics.archives.at(label)._value.get() for label in ArchiveLabel}  # noqa: SLF001 - no other way
    assert counted == {ArchiveLabel.WRITTEN: 1, ArchiveLabel.FAILED: 1}
