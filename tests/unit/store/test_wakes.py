from rollcage.store.wakes import EVERYBODY, Wakes


def test_a_message_wakes_whom_it_names_and_nobody_else() -> None:
    wakes = Wakes()
    with wakes.waiting("a") as first, wakes.waiting("a") as second, wakes.waiting("b") as other:
        wakes.wake("a")

        assert (first.is_set(), second.is_set(), other.is_set()) == (True, True, False)


def test_after_a_gap_everybody_is_woken() -> None:
    wakes = Wakes()
    with wakes.waiting("a") as first, wakes.waiting("b") as other:
        wakes.wake(EVERYBODY)

        assert (first.is_set(), other.is_set()) == (True, True)


def test_who_no_longer_waits_is_not_counted() -> None:
    wakes = Wakes()
    with wakes.waiting("a"), wakes.waiting("a"):
        assert wakes.count("a") == 2

    assert wakes.count("a") == 0
    wakes.wake("a")
