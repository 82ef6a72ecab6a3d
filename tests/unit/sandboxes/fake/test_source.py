"""The fake fails when it is told to, in the way it is told, on a clock that tests move."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rollcage.core.endings import EndCause, Ending
from rollcage.core.environment import Environment
from rollcage.sandboxes.fake.clock import VirtualClock, settle
from rollcage.sandboxes.fake.fate import Answer, Fate, image_missing, in_turn, unschedulable
from rollcage.sandboxes.fake.source import FakeSource
from rollcage.sandboxes.source import (
    Gone,
    HoldCause,
    Phase,
    QuotaExceeded,
    SandboxRejected,
    Seen,
    SourceThrottled,
    SourceUnavailable,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from rollcage.sandboxes.source import Change

ENVIRONMENT = Environment.model_validate({"name": "e", "spec": {"image": "none"}})


class Told(list["Change"]):
    """What a watcher was told; ``phases`` of one sandbox at a glance."""

    def phases(self, name: str) -> list[Phase]:
        return [change.sandbox.phase for change in self if isinstance(change, Seen) and change.sandbox.name == name]


@asynccontextmanager
async def watched(source: FakeSource) -> AsyncIterator[Told]:
    """Collect what a watcher is told, as it is told."""

    told = Told()

    async def collect() -> None:
        async with source.observe() as changes:
            async for change in changes:
                told.append(change)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(collect())
        await settle()
        yield told
        source.close()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


async def test_nothing_happens_before_its_time(clock: VirtualClock) -> None:
    source = FakeSource(clock, in_turn(Fate(starts_after=5)))
    async with watched(source) as told:
        await source.create("a", ENVIRONMENT)
        await clock.advance(4.9)
        assert told.phases("a") == [Phase.STARTING]

        await clock.advance(0.2)
        assert told.phases("a") == [Phase.STARTING, Phase.RUNNING]


@pytest.mark.parametrize(
    ("answer", "error", "made"),
    [
        (Answer.LOST, SourceUnavailable, True),
        (Answer.UNHEARD, SourceUnavailable, False),
        (Answer.THROTTLED, SourceThrottled, False),
        (Answer.OVER_QUOTA, QuotaExceeded, False),
        (Answer.REJECTED, SandboxRejected, False),
    ],
)
async def test_a_request_can_fail_in_every_way(
    clock: VirtualClock, answer: Answer, error: type[Exception], *, made: bool
) -> None:
    source = FakeSource(clock, in_turn(Fate(answer=answer)))
    with pytest.raises(error):
        await source.create("a", ENVIRONMENT)

    assert ("a" in source.sandboxes) is made


async def test_asking_again_after_a_lost_answer_finds_the_first(clock: VirtualClock) -> None:
    source = FakeSource(clock, in_turn(Fate(answer=Answer.LOST)))
    with pytest.raises(SourceUnavailable):
        await source.create("a", ENVIRONMENT)
    first = source.sandboxes["a"].uid
    await source.create("a", ENVIRONMENT)

    assert source.sandboxes["a"].uid == first
    assert [request.verb for request in source.requests] == ["create", "create"]


async def test_an_image_that_is_missing_holds_for_ever(clock: VirtualClock) -> None:
    source = FakeSource(clock, in_turn(image_missing()))
    await source.create("a", ENVIRONMENT)
    await clock.advance(10_000)

    held = source.sandboxes["a"]
    assert held.phase is Phase.STARTING
    assert held.hold
    assert held.hold.cause is HoldCause.IMAGE_PULL


async def test_one_without_room_starts_when_there_is_some(clock: VirtualClock) -> None:
    source = FakeSource(clock, in_turn(unschedulable(held_for=30), unschedulable()))
    await source.create("a", ENVIRONMENT)
    await source.create("b", ENVIRONMENT)
    await clock.advance(31.5)
    assert (source.sandboxes["a"].phase, source.sandboxes["b"].phase) == (Phase.RUNNING, Phase.STARTING)

    source.release("b")
    await clock.advance(1.5)
    assert source.sandboxes["b"].phase is Phase.RUNNING
    assert source.sandboxes["b"].hold is None


async def test_a_lagging_watch_tells_late_and_in_order(clock: VirtualClock) -> None:
    source = FakeSource(clock, lag=3)
    async with watched(source) as told:
        await source.create("a", ENVIRONMENT)
        await clock.advance(2)
        assert source.sandboxes["a"].phase is Phase.RUNNING
        assert told.phases("a") == []

        source.lag = 0
        await source.label("a", {"k": "v"})
        await clock.advance(0)
        assert told.phases("a") == []

        await clock.advance(2)
        assert told.phases("a") == [Phase.STARTING, Phase.RUNNING, Phase.RUNNING]


async def test_a_stalled_watch_tells_everything_once_it_goes_on(clock: VirtualClock) -> None:
    source = FakeSource(clock)
    async with watched(source) as told:
        source.stall()
        await source.create("a", ENVIRONMENT)
        await source.delete("a", uid=source.sandboxes["a"].uid)
        await clock.advance(100)
        assert told[1:] == []

        source.catch_up()
        await settle()
        assert [type(change) for change in told[1:]] == [Seen, Gone]


async def test_a_lost_node_takes_its_own_along_and_nobody_else(clock: VirtualClock) -> None:
    source = FakeSource(clock, nodes=("n1", "n2"))
    for name in ("a", "b"):
        await source.create(name, ENVIRONMENT)
    await clock.advance(2)
    source.silence_node("n1")
    source.lose_node("n1")

    lost, kept = source.sandboxes["a"], source.sandboxes["b"]
    assert (lost.node, lost.node_silent, kept.node_silent) == ("n1", True, False)
    assert lost.ending
    assert lost.ending.cause is EndCause.NODE_LOST
    assert kept.phase is Phase.RUNNING


async def test_one_that_fails_to_start_never_runs(clock: VirtualClock) -> None:
    source = FakeSource(clock, in_turn(Fate(start_failure=Ending(EndCause.START_FAILED, 127))))
    async with watched(source) as told:
        await source.create("a", ENVIRONMENT)
        await clock.advance(2)

    assert told.phases("a") == [Phase.STARTING, Phase.ENDED]


async def test_one_can_end_by_itself_in_its_own_time(clock: VirtualClock) -> None:
    ending = Ending(EndCause.OUT_OF_MEMORY, 137)
    source = FakeSource(clock, in_turn(Fate(runs_for=60, ending=ending)))
    await source.create("a", ENVIRONMENT)
    await clock.advance(62)

    assert source.sandboxes["a"].ending == ending


async def test_one_that_was_deleted_can_take_its_time_to_go(clock: VirtualClock) -> None:
    source = FakeSource(clock, in_turn(Fate(stays_for=30)))
    await source.create("a", ENVIRONMENT)
    await source.delete("a", uid="uid-1")
    await clock.advance(29)
    assert "a" in source.sandboxes

    await clock.advance(2)
    assert "a" not in source.sandboxes


async def test_one_can_vanish_without_a_cause(clock: VirtualClock) -> None:
    source = FakeSource(clock)
    async with watched(source) as told:
        await source.create("a", ENVIRONMENT)
        source.vanish("a")
        await settle()
        (gone,) = [change for change in told if isinstance(change, Gone)]

    assert gone.last.ending is None


async def test_whoever_sleeps_on_the_clock_wakes_in_order(clock: VirtualClock) -> None:

    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(clock.monotonic())

    async with asyncio.TaskGroup() as tasks:
        for seconds in (3.0, 1.0, 2.0):
            tasks.create_task(sleep(seconds))
        await clock.advance(10)

    assert woken == [1.0, 2.0, 3.0]
