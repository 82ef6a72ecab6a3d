from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollcage.reports.gathering import spread
from rollcage.reports.items import items_of
from rollcage.reports.run_data import RunRollout
from rollcage.reports.scales import bins, edges, over, percent, plain, quantile, seconds, wide

FIGURES = st.lists(st.floats(0, 1e9), min_size=1, max_size=50)


@given(FIGURES)
def test_every_value_lies_on_the_plot(values: list[float]) -> None:
    scale = wide(values, 10, 110)
    for value in values:
        assert 10 - 1e-6 <= scale(value) <= 110 + 1e-6


@given(FIGURES)
def test_every_value_is_counted_once(values: list[float]) -> None:
    assert sum(bins(values, edges(wide(values, 0, 1), 20))) == len(values)


@given(FIGURES)
@example([5e-324])
def test_marks_are_few_and_lie_on_the_plot(values: list[float]) -> None:
    scale = wide(values, 0, 100)
    ticks = scale.ticks()
    assert len(ticks) <= 16
    assert all(-0.5 <= scale(tick) <= 100.5 for tick in ticks)


def test_values_of_very_different_size_get_a_scale_of_powers() -> None:
    assert wide([0.001, 10], 0, 1).log
    assert not wide([1, 10], 0, 1).log
    assert wide([0, 0.001, 10], 0, 1)(0) == 0


def test_long_times_are_marked_as_people_read_clocks() -> None:
    hours = [tick / 3600 for tick in over([0, 9 * 3600], 0, 1).ticks(5, clock=True)]
    assert hours == [0, 2, 4, 6, 8]


@pytest.mark.parametrize(
    ("share", "expected"), [(0, 1), (0.5, 2.5), (1, 4)], ids=["the least", "between two", "the greatest"]
)
def test_quantiles(share: float, expected: float) -> None:
    assert quantile([4, 1, 3, 2], share) == expected


def test_of_nothing_there_is_no_quantile() -> None:
    assert math.isnan(quantile([], 0.5))


@pytest.mark.parametrize(
    ("spelled", "expected"),
    [
        (seconds(0), "0"),
        (seconds(0.0000123), "12 µs"),
        (seconds(0.0123), "12.3 ms"),
        (seconds(61), "61 s"),
        (seconds(7200), "2 h"),
        (seconds(200_000), "2.31 d"),
        (plain(1234), "1,234"),
        (plain(0.5), "0.5"),
        (plain(15_700), "15.7 k"),
        (plain(2_500_000), "2.5 M"),
        (percent(0), "0%"),
        (percent(0.028), "2.8%"),
        (percent(0.5), "50%"),
    ],
)
def test_figures_are_spelled_for_people(spelled: str, expected: str) -> None:
    assert spelled == expected


def graded(item: str | None, score: float | None, word: str = "trainable") -> RunRollout:
    return RunRollout("r", None, 1, 0, word, "", score, item)


def test_an_item_is_flat_if_several_rollouts_scored_the_same() -> None:
    found = items_of([graded("a", 1.0), graded("a", 1.0), graded("b", 0.0), graded("b", 1.0), graded("c", 0.5)])
    assert [(item.item, item.flat, item.mean) for item in found] == [
        ("b", False, 0.5),
        ("c", False, 0.5),
        ("a", True, 1.0),
    ]


def test_masked_rollouts_say_nothing_about_an_item() -> None:
    assert items_of([graded("a", 1.0, "masked"), graded(None, 1.0), graded("a", None)]) == []


def test_a_sample_is_spread_over_the_whole_run() -> None:
    names = [str(number) for number in range(10)]
    assert spread(names, 5) == ["0", "2", "4", "6", "8"]
    assert spread(names, 20) == names
    assert spread(names, 0) == []
