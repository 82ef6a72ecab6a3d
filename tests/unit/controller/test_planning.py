from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from rollcage.controller.planning import Goal, Moment, planned, stock
from rollcage.controller.view import View
from rollcage.core.ids import RolloutId
from rollcage.core.pool import Why
from rollcage.sandboxes.source import Hold, HoldCause, Phase, Sandbox, Seen
from rollcage.store.pools import Counts, Fate, Whereabouts

NOW = datetime(2026, 1, 2, tzinfo=UTC)
AT = Moment(NOW, 1000.0)
GOAL = Goal("small", "t1", warm=3, most=10, last_use=timedelta(hours=10))
NOBODY = Counts(ready=0, set_aside=0, claimed=0, waiting=0, reserved=0, spent=0)
OWNER = RolloutId("acme", "r1").key


def sandbox(name: str, phase: Phase = Phase.RUNNING, **changes: object) -> Sandbox:
    made = Sandbox(name, f"uid-{name}", "small", "t1", phase, NOW - timedelta(minutes=1))
    return replace(made, **changes)  # type: ignore[arg-type]


def seen(*sandboxes: Sandbox) -> View:
    view = View()
    for one in sandboxes:
        view.change(Seen(one))
    return view


def fates(**of: Fate) -> dict[str, Whereabouts]:
    return {name: Whereabouts(fate, OWNER if fate is Fate.BOUND else None) for name, fate in of.items()}


def test_sandboxes_are_sorted_by_what_the_store_says_of_them() -> None:
    view = seen(*(sandbox(name) for name in ("idle", "bound", "spent", "withdrawn", "new")))
    view.greeted.add("new")

    found = stock(GOAL, view, fates(idle=Fate.IDLE, bound=Fate.BOUND, spent=Fate.SPENT, withdrawn=Fate.WITHDRAWN), AT)

    assert {one.name for one in found.supply.idle} == {"idle", "new"}
    assert found.bound == ("bound",)
    assert set(found.spent) == {"spent", "withdrawn"}
    assert found.unoffered == ("new",)


def test_one_that_was_not_greeted_is_still_starting() -> None:
    found = stock(GOAL, seen(sandbox("s1")), {}, AT)

    assert [one.name for one in found.supply.starting] == ["s1"]


def test_one_that_was_asked_for_counts_before_it_is_seen() -> None:
    view = View()
    view.ask("s1", "small", "t1", 990.0)

    found = stock(GOAL, view, {}, AT)

    assert [(one.name, one.age) for one in found.supply.starting] == [("s1", timedelta(seconds=10))]
    assert planned(GOAL, found, NOBODY, usual_start=None).create == 2


def test_others_environments_are_none_of_its_business() -> None:
    assert stock(GOAL, seen(sandbox("s1", environment="other")), {}, AT).supply.total == 0


def test_one_that_is_going_away_still_takes_its_room() -> None:
    view = seen(*(sandbox(f"s{n}") for n in range(4)))
    view.going["s0"] = 999.0
    full = replace(GOAL, warm=4, most=4)

    found = stock(full, view, fates(s1=Fate.IDLE, s2=Fate.IDLE, s3=Fate.IDLE), AT)

    plan = planned(full, found, NOBODY, usual_start=None)
    assert (plan.create, plan.cramped) == (0, True)


def test_one_of_another_recipe_is_outdated() -> None:
    found = stock(GOAL, seen(sandbox("s1", template="t0")), fates(s1=Fate.IDLE), AT)

    assert found.supply.idle[0].outdated


def test_one_that_gets_old_is_replaced_before_it_is_too_old_to_be_given_out() -> None:
    view = seen(
        sandbox("ripe", created=NOW - timedelta(hours=9, minutes=30)),
        sandbox("too-old", created=NOW - timedelta(hours=11)),
    )
    of = {"ripe": Whereabouts(Fate.IDLE, None), "too-old": Whereabouts(Fate.IDLE, None)}

    found = stock(GOAL, view, of, AT)

    assert [(one.name, one.outdated) for one in found.supply.idle] == [("ripe", True)]
    assert found.useless == ("too-old",)


def test_one_in_use_may_get_as_old_as_it_likes() -> None:
    view = seen(sandbox("s1", created=NOW - timedelta(hours=11)))

    assert stock(GOAL, view, fates(s1=Fate.BOUND), AT).bound == ("s1",)


def test_an_idle_one_on_a_silent_node_is_useless() -> None:
    assert stock(GOAL, seen(sandbox("s1", node_silent=True)), fates(s1=Fate.IDLE), AT).useless == ("s1",)


def test_holds_are_passed_on() -> None:
    view = seen(
        sandbox("a", Phase.STARTING, hold=Hold(HoldCause.UNSCHEDULABLE, "")),
        sandbox("b", Phase.STARTING, hold=Hold(HoldCause.IMAGE_PULL, "")),
    )

    starting = {one.name: one for one in stock(GOAL, view, {}, AT).supply.starting}

    assert (starting["a"].unschedulable, starting["a"].failing) == (True, False)
    assert (starting["b"].unschedulable, starting["b"].failing) == (False, True)


def test_a_removed_environment_wants_nothing() -> None:
    gone = Goal.nothing("small")
    found = stock(gone, seen(sandbox("s1"), sandbox("s2")), fates(s1=Fate.IDLE, s2=Fate.BOUND), AT)

    decided = planned(gone, found, NOBODY, usual_start=None)

    assert [(one.name, one.why) for one in decided.remove] == [("s1", Why.OUTDATED)]
    assert decided.create == 0


def test_rollouts_that_wait_and_reservations_are_wanted_beyond_the_warm_ones() -> None:
    counts = replace(NOBODY, waiting=2, reserved=4)

    assert planned(GOAL, stock(GOAL, View(), {}, AT), counts, usual_start=None).create == 9
