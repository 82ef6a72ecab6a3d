"""What a log shows of a burst."""

from __future__ import annotations

from dataclasses import replace

from rollcage.cli.bursts.view import Lines, State, plain
from rollcage.reports.burst_data import PoolLevel

LEVEL = PoolLevel(at=1.0, warm=2, claimed=3, queued=4)
STATE = State(rollouts=9, done=1, trained=1, masked={}, seconds=1.0, level=LEVEL)


def test_a_line_has_the_pool_the_progress_and_the_verdicts_with_their_causes() -> None:
    state = replace(STATE, done=3, masked={"deleted": 1, "evicted": 1})

    assert plain(state) == ("warm 2  claimed 3  queued 4  done 3/9  trained on 1  masked 2 (deleted=1 evicted=1)")


def test_a_gateway_that_tells_nothing_of_pools_is_no_trouble() -> None:
    assert plain(replace(STATE, level=None)) == "done 1/9  trained on 1  masked 0"


def test_a_log_gets_a_line_now_and_then_and_surely_the_last() -> None:
    now, lines = 0.0, list[str]()
    view = Lines(lines.append, clock=lambda: now)

    for done in range(1, 10):
        now += 0.25
        view.show(replace(STATE, done=done, seconds=now))

    assert [line.split("done ")[1][:3] for line in lines] == ["1/9", "9/9"]
