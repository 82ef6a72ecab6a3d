"""Which trace a rollout is."""

from __future__ import annotations

from rollcage.core.ids import RolloutId
from rollcage.telemetry.traces import trace_id

NAMED = "5f0c2b8e9d1a47c3b6e2f4a8d7c9e013"


def test_what_a_trainer_calls_a_trace_is_one() -> None:
    assert f"{trace_id(RolloutId('ours', f'trace_{NAMED}')):032x}" == NAMED


def test_any_other_name_has_a_trace_of_its_own_for_ever() -> None:
    names = ["r1", f"trace_{NAMED}0", f"trace_{NAMED.upper()}", f"trace_{NAMED[1:]}", "trace_" + "0" * 32]
    traces = [trace_id(RolloutId("ours", name)) for name in names]
    assert len(set(traces)) == len(names)
    assert all(0 < one < 1 << 128 for one in traces)
    assert traces == [trace_id(RolloutId("ours", name)) for name in names]


def test_two_tenants_rollouts_of_one_name_are_two_traces() -> None:
    assert trace_id(RolloutId("ours", "r1")) != trace_id(RolloutId("theirs", "r1"))
