"""Figures that nobody can look at unless they would show it when something is wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from rollcage.cli.bursts.figures import Figures, causes, counted
from rollcage.cli.bursts.scripts import Means, Strike, Timing, behaving, composed, spoiling, struck
from rollcage.cli.bursts.summary import because
from rollcage.cli.bursts.trainer import Answer, Played

SHOWN = Answer(200, 0.1, "text")
REFUSED = Answer(503, 0.1, code="masked")
_names = count()


def good(**changes: Any) -> Played:
    """Return a rollout that went as it should."""
    usual = Played(behaving(), 0.0, 1.0, (SHOWN, SHOWN), sandbox=f"sandbox-{next(_names)}", word="trainable")
    return replace(usual, **changes)


def broken(**changes: Any) -> Played:
    """Return a rollout that lost its sandbox, and was treated as it should be."""
    script = struck(Means.KILL, Timing.BETWEEN)
    usual = good(script=script, answers=(SHOWN, REFUSED), struck=True, word="masked", cause="toolserver_died")
    return replace(usual, **changes)


def figures(*played: Played) -> Figures:
    return counted(played, seconds=1.0)


def test_a_burst_as_it_should_be() -> None:
    spoiled = good(script=spoiling("rm -rf /"), score=0.0)

    found = figures(good(), spoiled, broken())

    assert found.all_is_well
    assert (found.rollouts, found.distinct_sandboxes, found.trained) == (3, 3, 2)
    assert (found.masked, found.masked_expected, found.false_zeros, found.false_masks) == (1, 1, 0, 0)
    assert (found.spoiled, found.spoiled_trained, found.calls) == (1, 1, 5)


WRONG = [
    pytest.param(broken(word="trainable", cause="killed_from_inside"), "false_zeros", id="broken, and trained on"),
    pytest.param(broken(answers=(SHOWN, SHOWN)), "false_zeros", id="broken, and the model was shown an answer"),
    pytest.param(broken(word="", cause=""), "false_zeros", id="broken, and nobody noticed"),
    pytest.param(
        good(word="masked", cause="unknown", answers=(SHOWN, REFUSED)), "false_masks", id="masked for nothing"
    ),
    pytest.param(broken(score=0.0), "false_zeros", id="broken, and graded"),
    pytest.param(good(script=behaving(answer="42"), score=0.0), "wrong_scores", id="right, and graded as wrong"),
    pytest.param(good(script=spoiling("rm -rf /")), "wrong_scores", id="spoiled by its model, and excused"),
    pytest.param(good(wrong=("another's",)), "wrong_outputs", id="an output that cannot be"),
    pytest.param(good(answers=(REFUSED,), word=""), "unanswered", id="refused for nothing"),
]


@pytest.mark.parametrize(("played", "counter"), WRONG)
def test_what_is_wrong_is_counted_and_all_is_not_well(played: Played, counter: str) -> None:
    found = figures(good(), broken(), played)

    assert found.as_json()[counter] == 1
    assert not found.all_is_well


def test_two_rollouts_in_one_sandbox_are_seen() -> None:
    found = figures(good(sandbox="one"), good(sandbox="one"))

    assert found.distinct_sandboxes == 1
    assert not found.all_is_well


def test_causes_are_those_of_masked_rollouts_only() -> None:
    assert causes([good(cause="finished"), broken(), broken(cause="deleted")]) == {"toolserver_died": 1, "deleted": 1}


def test_why_a_rollout_is_not_trained_on_is_said_also_where_nobody_gave_a_verdict() -> None:
    unheard = good(answers=(SHOWN, Answer(502, 0.1, code="ConnectError")), word="")
    assert (because(good()), because(broken()), because(unheard)) == ("", "toolserver_died", "ConnectError")


def test_a_burst_has_as_many_rollouts_as_wished_and_all_of_its_strikes() -> None:
    strikes = (Strike(Means.KILL, Timing.DURING), Strike(Means.DELETE, Timing.BETWEEN))

    scripts = composed(40, own_root=True, strikes=strikes)

    assert len(scripts) == len({one.rollout for one in scripts}) == 40
    assert tuple(one.strike for one in scripts if one.strike) == strikes


def test_nothing_destructive_is_played_without_a_root_of_its_own() -> None:
    commands = [
        str(call.arguments.get("command", "")) for script in composed(40, own_root=False) for call in script.calls
    ]

    assert not [command for command in commands if "rm " in command or "-1" in command or " 1;" in command]
