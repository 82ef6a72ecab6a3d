from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rollcage.controller.view import ANSWER_SECONDS, EXPECTATION_SECONDS, View
from rollcage.core.endings import EndCause, Ending
from rollcage.sandboxes.source import Gone, Phase, Sandbox, Seen


def sandbox(name: str = "s1", phase: Phase = Phase.RUNNING) -> Sandbox:
    ending = Ending(EndCause.EXITED, exit_code=1) if phase is Phase.ENDED else None
    return Sandbox(name, f"uid-{name}", "small", "t1", phase, datetime(2026, 1, 1, tzinfo=UTC), ending=ending)


def test_what_was_asked_for_counts_as_starting_before_the_watch_shows_it() -> None:
    view = View()
    view.ask("s1", "small", "t1", 0.0)

    assert list(view.starting()) == ["s1"]


def test_what_is_shown_is_not_counted_twice() -> None:
    view = View()
    view.ask("s1", "small", "t1", 0.0)
    view.change(Seen(sandbox(phase=Phase.STARTING)))

    assert list(view.starting()) == ["s1"]


def test_what_was_greeted_has_started() -> None:
    view = View()
    view.change(Seen(sandbox()))
    view.greeted.add("s1")

    assert list(view.starting()) == []


@pytest.mark.parametrize(
    ("answered", "patience"),
    [
        pytest.param(True, EXPECTATION_SECONDS, id="a late watch is waited for"),
        pytest.param(False, ANSWER_SECONDS, id="a lost answer is asked for soon"),
    ],
)
def test_what_does_not_show_up_is_asked_for_again_under_its_name(*, answered: bool, patience: float) -> None:
    view = View()
    view.ask("s1", "small", "t1", 0.0)
    if answered:
        view.answer("s1")

    assert not list(view.overdue(patience))
    assert [name for name, _ in view.overdue(patience + 1)] == ["s1"]


def test_asking_again_does_not_make_a_start_look_young() -> None:
    view = View()
    view.ask("s1", "small", "t1", 10.0)
    view.ask("s1", "small", "t1", 200.0)

    assert view.started_in("s1", 210.0) == 200.0


def test_an_end_is_told_once() -> None:
    view = View()
    view.change(Seen(sandbox()))

    assert view.change(Seen(sandbox(phase=Phase.ENDED))) == sandbox(phase=Phase.ENDED)
    assert view.change(Seen(sandbox(phase=Phase.ENDED))) is None
    assert view.change(Gone(sandbox(phase=Phase.ENDED))) is None


def test_whoever_vanishes_has_ended_too() -> None:
    view = View()
    view.change(Seen(sandbox()))
    view.greeted.add("s1")
    view.going["s1"] = 0.0

    assert view.change(Gone(sandbox())) == sandbox()
    assert (view.seen, view.greeted, view.going) == ({}, set(), {})
