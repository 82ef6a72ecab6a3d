"""Scores in a real Redis: kept once, replaced on request, refused for what was masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.core.errors import RolloutEnded, RolloutUnknown
from rollcage.core.ids import RolloutId, RunId
from rollcage.store.records import Subject, Verdict
from rollcage.store.scores import Taken

if TYPE_CHECKING:
    from integration.store.desk import Desk
    from rollcage.store.store import Store

ROLLOUT = RolloutId("acme", "r1")
RUN = RunId("acme", "run-1")
SUBJECT = Subject.of(ROLLOUT, run="run-1", environment="small")


async def ended(store: Store, word: str = "trainable") -> None:
    await store.rollouts.end(SUBJECT, Verdict(word, by="test", cause="unknown"))


async def test_the_first_score_stays(desk: Desk) -> None:
    store = desk.store
    await ended(store)
    first = await store.scores.keep(ROLLOUT.key, score=0.25, record=b"one", item="q1")
    again = await store.scores.keep(ROLLOUT.key, score=1.0, record=b"two", item="q1")
    assert (first.first, again.first, again.record) == (True, False, b"one")
    found = await store.rollouts.get(ROLLOUT.key)
    assert found is not None
    assert (found.score, found.item) == (0.25, "q1")


async def test_a_score_that_is_replaced_counts_once_in_its_run(desk: Desk) -> None:
    store = desk.store
    await ended(store)
    for score in (0.1, 1e-07, -2.5):
        await store.scores.keep(ROLLOUT.key, score=score, record=b"x", item="", replace=True)
    run = await store.rollouts.run(RUN.key)
    assert run is not None
    assert run.graded == 1
    assert run.score_total == pytest.approx(-2.5)


async def test_what_was_masked_gets_no_score(desk: Desk) -> None:
    store = desk.store
    await ended(store, "masked")
    with pytest.raises(RolloutEnded):
        await store.scores.keep(ROLLOUT.key, score=1.0, record=b"x", item="", replace=True)
    assert await store.scores.get(ROLLOUT.key) is None


async def test_nobody_unknown_gets_a_score(desk: Desk) -> None:
    store = desk.store
    with pytest.raises(RolloutUnknown):
        await store.scores.keep(ROLLOUT.key, score=1.0, record=b"x", item="")


async def test_what_was_taken_first_is_what_everybody_gets(desk: Desk) -> None:
    store = desk.store
    assert await store.scores.taken(ROLLOUT.key) is None
    first = await store.scores.take(ROLLOUT.key, Taken(b"{}", b"\0one"))
    assert await store.scores.take(ROLLOUT.key, Taken(b"{}", b"two")) == first
    assert await store.scores.taken(ROLLOUT.key) == Taken(b"{}", b"\0one")
