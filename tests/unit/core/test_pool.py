from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.core.pool import STUCK_AFTER, Idle, Plan, Removal, Starting, Supply, Wanted, Why, plan

SECOND = timedelta(seconds=1)


def idle(count: int, *, outdated: bool = False) -> tuple[Idle, ...]:
    return tuple(Idle(f"{'old' if outdated else 'idle'}-{n}", outdated=outdated) for n in range(count))


def starting(count: int, *, age: timedelta = SECOND, **facts: bool) -> tuple[Starting, ...]:
    return tuple(Starting(f"start-{n}", age + n * SECOND, **facts) for n in range(count))


def decide(supply: Supply, *, warm: int = 10, demand: int = 0, most: int = 100, **arguments: Any) -> Plan:
    usual: dict[str, Any] = {"in_flight": 8, "usual_start": 2 * SECOND}
    return plan(wanted=Wanted(warm, demand, most), supply=supply, **(usual | arguments))


@pytest.mark.parametrize(
    ("supply", "wanted", "create"),
    [
        pytest.param(Supply(), {}, 8, id="an empty pool starts as many as may start at once"),
        pytest.param(Supply(starting=starting(8)), {}, 0, id="starting sandboxes count as supply"),
        pytest.param(Supply(starting=starting(5)), {}, 3, id="what may start at once is what is left of the bound"),
        pytest.param(Supply(idle=idle(7)), {}, 3, id="only the missing ones are created"),
        pytest.param(Supply(idle=idle(10)), {}, 0, id="a full pool is left alone"),
        pytest.param(Supply(idle=idle(10)), {"demand": 4}, 4, id="waiting claims are wanted beside the warm ones"),
        pytest.param(Supply(claimed=10), {}, 8, id="claimed sandboxes are no supply"),
        pytest.param(Supply(claimed=97), {}, 3, id="claimed sandboxes use up room"),
        pytest.param(Supply(claimed=120), {}, 0, id="a bound that was lowered below what is there creates nothing"),
        pytest.param(Supply(), {"warm": 0}, 0, id="a pool of zero stays empty"),
        pytest.param(Supply(), {"warm": 0, "demand": 1}, 1, id="a pool of zero wakes up for a claim"),
        pytest.param(
            Supply(starting=starting(1, unschedulable=True)), {}, 0, id="nothing is added while one cannot be scheduled"
        ),
        pytest.param(Supply(starting=starting(1, failing=True)), {}, 0, id="one probe is enough while starts fail"),
        pytest.param(
            Supply(idle=idle(10, outdated=True)), {}, 8, id="outdated idle ones are replaced before they are removed"
        ),
    ],
)
def test_creates(supply: Supply, wanted: dict[str, int], create: int) -> None:
    assert decide(supply, **wanted).create == create


@pytest.mark.parametrize(
    ("supply", "cramped"),
    [
        pytest.param(Supply(claimed=90), False, id="all that is missing fits beside what is there"),
        pytest.param(Supply(claimed=91), True, id="one has to go before the last can come"),
        pytest.param(Supply(idle=idle(10), claimed=90), False, id="nothing is missing"),
    ],
)
def test_is_cramped_while_the_missing_ones_have_no_room(supply: Supply, *, cramped: bool) -> None:
    assert decide(supply).cramped is cramped


def test_what_is_too_much_goes_the_unready_and_youngest_first() -> None:
    found = decide(Supply(idle=idle(2), starting=starting(2)), warm=1).remove

    assert found == (
        Removal("start-0", Why.SURPLUS),
        Removal("start-1", Why.SURPLUS),
        Removal("idle-0", Why.SURPLUS),
    )


def test_outdated_idle_ones_go_as_their_successors_become_ready() -> None:
    found = decide(Supply(idle=(*idle(3), *idle(10, outdated=True)))).remove

    assert found == tuple(Removal(f"old-{n}", Why.OUTDATED) for n in range(3))


def test_in_a_pool_without_room_one_outdated_sandbox_at_a_time_makes_way() -> None:
    full = Supply(idle=idle(10, outdated=True))

    assert decide(full, most=10).remove == (Removal("old-0", Why.OUTDATED),)


def test_no_second_one_makes_way_while_the_first_successor_starts() -> None:
    assert decide(Supply(idle=idle(9, outdated=True), starting=starting(1)), most=10).remove == ()


def test_an_outdated_start_is_useless_at_once() -> None:
    assert decide(Supply(starting=starting(1, outdated=True))).remove == (Removal("start-0", Why.OUTDATED),)


def test_a_start_that_is_late_while_others_get_through_is_replaced_the_oldest_first() -> None:
    found = decide(Supply(starting=starting(3, age=STUCK_AFTER + SECOND)))

    assert found.remove == (Removal("start-2", Why.STUCK),)


@pytest.mark.parametrize(
    ("facts", "usual_start"),
    [
        pytest.param({}, None, id="when none has got through lately"),
        pytest.param({}, STUCK_AFTER, id="when all take that long these days"),
        pytest.param({"unschedulable": True}, 2 * SECOND, id="when it cannot be scheduled"),
        pytest.param({"failing": True}, 2 * SECOND, id="when its image cannot be pulled"),
    ],
)
def test_a_late_start_is_not_stuck(facts: dict[str, bool], usual_start: timedelta | None) -> None:
    late = starting(2, age=STUCK_AFTER + SECOND, **facts)

    assert decide(Supply(starting=late), usual_start=usual_start).remove == ()


@given(
    warm=st.integers(0, 20),
    demand=st.integers(0, 20),
    most=st.integers(0, 40),
    ready=st.integers(0, 30),
    old=st.integers(0, 10),
    begun=st.integers(0, 30),
    claimed=st.integers(0, 40),
    in_flight=st.integers(1, 16),
)
def test_no_plan_ever_exceeds_the_bounds_or_removes_what_is_needed(
    *, warm: int, demand: int, most: int, ready: int, old: int, begun: int, claimed: int, in_flight: int
) -> None:
    supply = Supply((*idle(ready), *idle(old, outdated=True)), starting(begun), claimed)

    found = decide(supply, warm=warm, demand=demand, most=most, in_flight=in_flight)

    names = [removal.name for removal in found.remove]
    kept = ready + old + begun - len(names)
    assert len(names) == len(set(names))
    assert supply.total + found.create <= max(most, supply.total)
    assert begun + found.create <= max(in_flight, begun)
    makes_way = supply.total >= most and old > 0
    assert kept + found.create + makes_way >= min(warm + demand, ready + old + begun)
    assert not (found.create and any(removal.why is Why.SURPLUS for removal in found.remove))
