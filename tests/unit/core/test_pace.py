from __future__ import annotations

from datetime import timedelta

import pytest

from rollcage.core.pace import (
    BURST_LONGEST,
    FEWEST_STARTS,
    MOST_STARTS,
    Bucket,
    Burst,
    Pace,
    deletions_allowed,
    pause_after,
    shared,
    starts_allowed,
)


def filled(pace: Pace, *, pods: int, capacity: float, alone: float) -> Pace:
    """Start pods on a cluster that takes *alone* seconds for one and never does more than *capacity* a second."""
    for _ in range(pods):
        took = max(alone, pace.starts / capacity)
        pace = pace.started(timedelta(seconds=took), beside=pace.starts)
    return pace


class TestPace:
    def test_a_small_cluster_gets_a_few_times_as_many_starts_as_keep_it_busy(self) -> None:
        pace = filled(Pace(), pods=300, capacity=2.4, alone=2.0)

        busy = 2.4 * 2.0
        assert busy <= pace.starts <= 5 * busy

    def test_a_large_cluster_gets_many_within_a_hundred_starts(self) -> None:
        pace = filled(Pace(), pods=100, capacity=200.0, alone=2.0)

        assert pace.starts > 100

    def test_crowded_starts_shrink_the_bound_but_never_to_nothing(self) -> None:
        pace = filled(Pace(bound=200.0), pods=1, capacity=200.0, alone=1.0)
        for _ in range(500):
            pace = pace.started(timedelta(seconds=600), beside=pace.starts)

        assert pace.starts == FEWEST_STARTS

    def test_the_bound_has_an_upper_end(self) -> None:
        assert filled(Pace(), pods=5000, capacity=1e6, alone=0.1).starts == MOST_STARTS

    def test_a_bound_that_nobody_uses_does_not_grow(self) -> None:
        pace = Pace(bound=16.0)
        for _ in range(100):
            pace = pace.started(timedelta(seconds=1), beside=1)

        assert pace.starts == 16

    def test_a_source_that_is_too_busy_halves_the_bound(self) -> None:
        assert Pace(bound=64.0).throttled().starts == 32

    @pytest.mark.parametrize(
        ("stock", "expected"),
        [
            pytest.param(0, 16, id="with nothing ready the next one is what counts, and only the pace allows"),
            pytest.param(84, 16, id="a small stock allows no more than the pace does"),
            pytest.param(100, 20, id="beside a stock one more for each five"),
            pytest.param(10_000, MOST_STARTS, id="never more than there may be at all"),
        ],
    )
    def test_the_more_stand_ready_the_more_may_crowd_each_other(self, stock: int, expected: int) -> None:
        assert Pace(bound=16.0).starts_beside(stock) == expected

    def test_a_source_that_is_too_busy_is_crowded_less_for_a_stocks_sake_for_a_while(self) -> None:
        busy = Pace(bound=16.0).throttled()
        assert busy.starts_beside(500) == 50
        for _ in range(20):
            busy = busy.started(timedelta(seconds=1), beside=1)
        assert busy.starts_beside(500) == 99

    def test_nothing_is_usual_before_the_first_start(self) -> None:
        assert Pace().usual is None
        assert Pace().started(timedelta(seconds=3), beside=1).usual == timedelta(seconds=3)


@pytest.mark.parametrize(
    ("starting", "need_room", "expected"),
    [
        pytest.param(False, False, 16, id="with nothing starting they may use the whole pace"),
        pytest.param(True, False, 4, id="beside starts they are few"),
        pytest.param(True, True, 64, id="starts that wait for room come after what takes it"),
    ],
)
def test_deletions(*, starting: bool, need_room: bool, expected: int) -> None:
    assert deletions_allowed(Pace(bound=16.0), starting=starting, need_room=need_room) == expected


@pytest.mark.parametrize(
    ("stock", "need_room", "leaving", "expected"),
    [
        pytest.param(0, True, 500, 4, id="many that take the room leave first, and some starts go on beside them"),
        pytest.param(0, True, 65, 4, id="more than may leave at once are many"),
        pytest.param(0, True, 64, 16, id="as many as may leave at once hold nobody up"),
        pytest.param(0, False, 500, 16, id="starts that have room wait for nobody"),
        pytest.param(200, False, 0, 40, id="beside a stock they may be more"),
        pytest.param(200, True, 65, 4, id="a stock does not make them more while others leave"),
    ],
)
def test_starts(*, stock: int, need_room: bool, leaving: int, expected: int) -> None:
    assert starts_allowed(Pace(bound=16.0), stock=stock, need_room=need_room, leaving=leaving) == expected


def test_one_start_goes_on_beside_deletions_however_small_the_pace() -> None:
    assert starts_allowed(Pace(bound=2.0), stock=0, need_room=True, leaving=500) == 1


class TestBurst:
    def test_a_pool_is_not_filled_while_claims_come(self) -> None:
        burst = Burst().claimed(100.0)

        assert not burst.leaves_room(100.5, waiting=0)
        assert burst.leaves_room(101.5, waiting=0)

    def test_rollouts_that_wait_are_what_starts_are_for(self) -> None:
        assert Burst().claimed(100.0).leaves_room(100.1, waiting=1)

    def test_a_burst_that_never_ends_does_not_starve_the_pool(self) -> None:
        burst, now = Burst(), 100.0
        while now < 100.0 + BURST_LONGEST.total_seconds() + 1:
            burst = burst.claimed(now)
            now += 0.5

        assert burst.leaves_room(now, waiting=0)

    def test_before_the_first_claim_there_is_no_burst(self) -> None:
        assert Burst().leaves_room(0.0, waiting=0)


class TestBucket:
    def test_some_at_once_and_then_so_many_a_second(self) -> None:
        bucket = Bucket(rate=10.0, burst=5)
        assert bucket.available(100.0) == 5
        bucket.take(5)

        assert bucket.available(100.05) == 0
        assert bucket.available(100.35) == 3
        assert bucket.available(200.0) == 5

    def test_a_rest_that_was_asked_for_is_kept(self) -> None:
        bucket = Bucket(rate=10.0, burst=5)
        bucket.close(100.0, seconds=7.0)

        assert bucket.available(106.0) == 0
        assert bucket.available(107.5) == 5


def test_pauses_grow_with_the_failures_and_have_an_end() -> None:
    pauses = [pause_after(failures).total_seconds() for failures in range(9)]

    assert pauses == [0, 1, 2, 4, 8, 16, 32, 60, 60]


class TestSharing:
    def test_a_small_pool_does_not_wait_behind_a_large_one(self) -> None:
        assert shared(10, {"large": 500, "small": 3}) == {"large": 7, "small": 3}

    def test_those_with_rollouts_waiting_come_first(self) -> None:
        assert shared(4, {"quiet": 10, "waiting": 3}, first=("waiting",)) == {"quiet": 1, "waiting": 3}

    def test_no_room_is_no_start(self) -> None:
        assert shared(0, {"a": 1}) == {"a": 0}
        assert shared(-3, {"a": 1}) == {"a": 0}
