from rollcage.store.tallies import tally


def test_no_calls_are_nothing() -> None:
    nothing = tally([])
    assert (nothing.calls, nothing.repeated, dict(nothing.outcomes), nothing.shown) == (0, 0, {}, 0)
    assert (nothing.median_ms, nothing.slowest_ms) == (None, None)


def test_calls_for_the_same_count_as_repeated_from_the_second_on() -> None:
    marks = [b"c1 aa t1 100", b"c2 bb t2 100", b"c3 aa t3 100", b"c4 aa t4 100"]
    assert (tally(marks).calls, tally(marks).repeated) == (4, 2)


def test_finished_calls_add_up_and_running_ones_only_count() -> None:
    found = tally([b"c1 aa t1 100 110 ok 7", b"c2 bb t2 100 400 failed 5", b"c3 cc t3 100 120 ok 1", b"c4 dd t4 100"])
    assert (found.calls, dict(found.outcomes)) == (4, {"ok": 2, "failed": 1})
    assert (found.median_ms, found.slowest_ms, found.shown) == (20, 300, 13)
