"""What the burst compares a wait with."""

from __future__ import annotations

from load.burst import second_half


def test_the_second_half_of_a_fill_counts_from_a_pool_that_is_half_full() -> None:
    assert second_half([1.0, 2.0, 5.0, 9.0]) == 7.0


def test_of_an_odd_number_the_second_half_is_the_larger_one() -> None:
    assert second_half([1.0, 2.0, 5.0, 9.0, 11.0]) == 9.0
