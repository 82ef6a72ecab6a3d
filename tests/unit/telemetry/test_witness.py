"""What the use cases tell of is counted under the right names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from prometheus_client import CollectorRegistry

from rollcage.core.verdict_words import Cause, Word
from rollcage.rollouts.actions import Outcome
from rollcage.telemetry.metrics import Metrics
from rollcage.telemetry.witness import MetricsWitness

if TYPE_CHECKING:
    from rollcage.rollouts.witness import Witness


class Counted:
    def __init__(self) -> None:
        self._metrics = Metrics(CollectorRegistry())
        self._metrics.environments.know(["swe"])
        # Typed as what the use cases want, so that the two cannot grow apart.
        self.witness: Witness = MetricsWitness(self._metrics, custom_tools={"swe": {"lint"}}.__getitem__)

    def __getitem__(self, sample: str) -> float:
        lines = self._metrics.exposition().decode().splitlines()
        return float(next(line for line in lines if line.startswith(sample + " ")).rpartition(" ")[2])

    def answered(self, **changes: Any) -> None:
        fields: dict[str, Any] = {
            "environment": "swe",
            "tool": "shell",
            "outcome": Outcome.OK,
            "seconds": 0.2,
            "replayed": False,
            "output_bytes": 100,
            "truncated": False,
        }
        self.witness.call_answered(**fields | changes)


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.mark.parametrize("outcome", Outcome)
def test_a_call_is_counted_by_tool_and_outcome(counted: Counted, outcome: Outcome) -> None:
    counted.answered(outcome=outcome)
    assert counted[f'rollcage_calls_total{{outcome="{outcome}",tool="shell"}}'] == 1
    assert counted['rollcage_call_seconds_count{tool="shell"}'] == 1
    assert counted['rollcage_output_bytes_sum{tool="shell"}'] == 100


def test_tools_of_the_environment_share_a_label_and_so_do_tools_that_nobody_has(counted: Counted) -> None:
    counted.answered(tool="lint")
    counted.answered(tool="made-up-1")
    counted.answered(tool="made-up-2")
    assert counted['rollcage_calls_total{outcome="ok",tool="custom"}'] == 1
    assert counted['rollcage_calls_total{outcome="ok",tool="unknown"}'] == 2


def test_a_replay_is_counted_as_such_and_not_as_a_call(counted: Counted) -> None:
    counted.answered()
    counted.answered(replayed=True)
    assert counted['rollcage_calls_total{outcome="ok",tool="shell"}'] == 1
    assert counted["rollcage_calls_replayed_total"] == 1


def test_a_cut_output_is_counted(counted: Counted) -> None:
    counted.answered(truncated=True)
    assert counted['rollcage_outputs_truncated_total{tool="shell"}'] == 1


def test_a_masked_rollout_is_a_failure_of_the_infrastructure_and_others_are_not(counted: Counted) -> None:
    counted.witness.verdict_given(environment="swe", word=Word.MASKED, cause=Cause.EVICTED, calls=3)
    counted.witness.verdict_given(environment="swe", word=Word.TRAINABLE, cause=Cause.OUT_OF_MEMORY, calls=5)
    assert counted['rollcage_infra_failures_total{cause="evicted",environment="swe"}'] == 1
    assert counted['rollcage_verdicts_total{cause="out_of_memory",environment="swe",verdict="trainable"}'] == 1
    assert counted['rollcage_rollout_calls_sum{environment="swe",verdict="masked"}'] == 3
    with pytest.raises(StopIteration):
        assert counted['rollcage_infra_failures_total{cause="out_of_memory",environment="swe"}']


@pytest.mark.parametrize("why", [Cause.EVICTED, "no_sandbox"])
def test_a_call_without_a_result_is_counted_as_ours_and_by_why(counted: Counted, why: Cause | str) -> None:
    counted.witness.call_failed(environment="swe", tool="shell", seconds=0.2, why=why)
    assert counted['rollcage_calls_total{outcome="infra",tool="shell"}'] == 1
    assert counted['rollcage_call_seconds_count{tool="shell"}'] == 1
    assert counted[f'rollcage_call_failures_total{{cause="{why}",tool="shell"}}'] == 1


@pytest.mark.parametrize("name", ["", "\ud800", "a\n{x}", "shell\0", "x" * 100_000], ids=repr)
def test_names_that_somebody_made_up_grow_no_metric_and_break_nothing(counted: Counted, name: str) -> None:
    counted.answered(tool=name)
    counted.witness.call_failed(environment="swe", tool=name, seconds=0.2, why=name)
    counted.witness.sandbox_claimed(environment=name, seconds=1)
    assert counted['rollcage_calls_total{outcome="ok",tool="unknown"}'] == 1
    assert counted['rollcage_call_failures_total{cause="internal",tool="unknown"}'] == 1
    assert counted['rollcage_claim_seconds_count{environment="other"}'] == 1


@pytest.mark.parametrize(
    ("told", "sample"),
    [
        ("rollout_moved", "rollcage_rollouts_moved_total"),
        ("misroute_refused", "rollcage_misroutes_refused_total"),
        ("answer_lost", "rollcage_calls_maybe_delivered_total"),
        ("store_bypassed", "rollcage_store_bypassed_total"),
        ("record_dropped", "rollcage_records_dropped_total"),
    ],
)
def test_what_happened_in_an_environment_is_counted_there(counted: Counted, told: str, sample: str) -> None:
    getattr(counted.witness, told)(environment="swe")
    assert counted[f'{sample}{{environment="swe"}}'] == 1


def test_a_claim_is_measured(counted: Counted) -> None:
    counted.witness.sandbox_claimed(environment="swe", seconds=0.0015)
    assert counted['rollcage_claim_seconds_bucket{environment="swe",le="0.001"}'] == 0
    assert counted['rollcage_claim_seconds_bucket{environment="swe",le="0.002"}'] == 1
