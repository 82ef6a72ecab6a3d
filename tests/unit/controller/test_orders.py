"""What is asked of the source: how many start and leave at once, and when labels are written."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rollcage.controller.orders import Look, creations, may_label, removals
from rollcage.controller.planning import Goal, Stock, planned
from rollcage.controller.troubles import Troubles
from rollcage.core.pace import Burst, Pace
from rollcage.core.pool import Idle, Starting, Supply
from rollcage.store.pools import Counts

PACE = Pace(bound=16.0)
PLENTY = 100
NOW = 1000.0


def look(
    name: str = "small",
    *,
    most: int = 500,
    warm: int = 500,
    idle: int = 0,
    starting: int = 0,
    bound: int = 0,
    spent: int = 0,
    going: int = 0,
    waiting: int = 0,
) -> Look:
    """An environment with so many sandboxes of each kind."""
    goal = Goal(name, "t1", warm=warm, most=most, last_use=timedelta(hours=10))
    supply = Supply(
        tuple(Idle(f"idle-{n}") for n in range(idle)),
        tuple(Starting(f"start-{n}", timedelta(seconds=1)) for n in range(starting)),
        claimed=bound + spent + going,
    )
    gone = tuple(f"spent-{n}" for n in range(spent))
    stock = Stock(supply, gone, (), (), tuple(f"bound-{n}" for n in range(bound)), going)
    counts = Counts(ready=idle, set_aside=0, claimed=bound, waiting=waiting, reserved=0, spent=spent)
    return Look(goal, stock, counts, {}, planned(goal, stock, counts, usual_start=None))


def created(*looks: Look) -> dict[str, int]:
    return creations(
        {one.goal.name: one for one in looks},
        pace=PACE,
        burst=Burst(),
        troubles=Troubles(lambda *_: None),
        writes=PLENTY,
        now=NOW,
    )


def removed(*looks: Look, going: int = 0) -> int:
    by_name = {one.goal.name: one for one in looks}
    return len(removals(by_name, ended=(), useless=(), going=going, pace=PACE, writes=PLENTY))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(look(), 16, id="an empty pool is filled at the pace"),
        pytest.param(look(idle=200), 40, id="beside a stock more start at once"),
        pytest.param(look(idle=200, starting=30), 10, id="those that start already count"),
        pytest.param(look(spent=400, going=64), 4, id="a full one that is renewed is emptied first"),
        pytest.param(look(spent=400, going=64, waiting=9), 4, id="though rollouts wait, who get some meanwhile"),
        pytest.param(look(spent=400, going=64, starting=4), 0, id="those that start beside it count"),
        pytest.param(look(going=64, starting=4), 12, id="what is left may leave at once, and starts go on"),
        pytest.param(look(warm=100, most=1000, spent=400), 16, id="where there is room nobody has to leave first"),
        pytest.param(look(idle=250, bound=240, spent=10), 0, id="where there is none nothing starts"),
        pytest.param(look(idle=240, bound=240, spent=10), 10, id="rollouts that end one by one make room one by one"),
    ],
)
def test_how_many_start(seen: Look, expected: int) -> None:
    assert created(seen) == {"small": expected}


def test_a_pool_that_is_renewed_holds_up_no_other() -> None:
    assert created(look("renewed", spent=400, going=64), look("other", warm=5)) == {"renewed": 4, "other": 5}


def test_a_pool_with_a_stock_does_not_crowd_one_that_has_nothing() -> None:
    assert created(look("stocked", idle=200, starting=30), look("empty", warm=5)) == {"stocked": 0, "empty": 0}
    assert created(look("stocked", idle=200, starting=14), look("empty", warm=5)) == {"stocked": 1, "empty": 1}


def test_a_stock_crowds_no_rollout_that_is_served() -> None:
    assert created(look(idle=200, bound=1, most=800)) == {"small": 16}
    assert created(look("stocked", idle=200), look("served", warm=0, bound=1)) == {"stocked": 16, "served": 0}


def test_a_pool_that_needs_nothing_does_not_hold_back_one_with_a_stock() -> None:
    assert created(look("stocked", idle=200), look("asleep", warm=0)) == {"stocked": 40, "asleep": 0}


def test_a_pool_that_is_renewed_leaves_the_others_what_it_does_not_use() -> None:
    assert created(look("renewed", spent=400, going=64), look("other")) == {"renewed": 4, "other": 12}


def test_many_leave_at_once_while_starts_wait_for_their_room() -> None:
    assert removed(look(spent=436, going=64), going=40) == 24


@pytest.mark.parametrize(
    ("seen", "claimed", "expected"),
    [
        pytest.param(look(bound=9), 900.0, True, id="when nothing else is to be done"),
        pytest.param(look(bound=9), NOW, False, id="not while claims come"),
        pytest.param(look(bound=9, starting=8, waiting=3), 900.0, False, id="not while rollouts wait for a start"),
        pytest.param(look(bound=9, starting=8), 900.0, True, id="while a pool is filled for nobody yet"),
        pytest.param(look(bound=9, waiting=3), 900.0, True, id="while rollouts wait for what does not start"),
    ],
)
def test_when_labels_are_written(seen: Look, claimed: float, *, expected: bool) -> None:
    assert may_label({"small": seen}, burst=Burst().claimed(claimed), now=NOW) is expected
