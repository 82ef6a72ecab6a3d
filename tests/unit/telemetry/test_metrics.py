"""No metric can be written under a label that nobody declared."""

from __future__ import annotations

from enum import StrEnum

import pytest
from prometheus_client import CollectorRegistry

from rollcage.controller.troubles import Reason
from rollcage.core.endings import EndCause, Ending
from rollcage.core.environment_spec import BuiltinTool
from rollcage.core.errors import ClaimTimedOut, QueueFull, RollcageError, StoreRecovering, StoreUnavailable
from rollcage.core.verdict_facts import SandboxEnded
from rollcage.core.verdict_words import Cause
from rollcage.core.verdicts import judge
from rollcage.rollouts.errors import NoSandbox, StillRunning
from rollcage.telemetry.labels import (
    MOST_ENVIRONMENTS,
    OTHER,
    Environments,
    OutcomeLabel,
    RefusalLabel,
    StartLabel,
    StatusLabel,
    ToolLabel,
    refusal_label,
    status_label,
    tool_label,
)
from rollcage.telemetry.metrics import Allowed, Metrics
from rollcage.telemetry.zeroes import word_of
from rollcage.wire.messages import OutcomeClass


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(CollectorRegistry())


def test_every_label_is_an_enum_or_a_bounded_set_of_environments(metrics: Metrics) -> None:
    for metric in metrics:
        for name, allowed in metric.allowed.items():
            enums = allowed if isinstance(allowed, tuple) else (allowed,)
            for one in enums:
                assert isinstance(one, Environments) or issubclass(one, StrEnum), (metric.meter, name)


def test_every_metric_of_the_registry_was_declared_here(metrics: Metrics) -> None:
    declared = {metric.meter for metric in metrics}
    assert {family.name for meter in declared for family in meter.collect()} == {
        family.name for family in metrics.registry.collect()
    }


def test_a_value_that_nobody_declared_is_refused_by_every_label(metrics: Metrics) -> None:
    for metric in metrics:
        for position, allowed in enumerate(metric.allowed.values()):
            if isinstance(allowed, Environments):
                continue
            others = [_any(one) for one in metric.allowed.values()]
            others[position] = "trace_123"
            with pytest.raises(TypeError):
                metric.at(*others)


def _any(allowed: Allowed) -> str:
    if isinstance(allowed, Environments):
        return "e"
    return next(iter(allowed[0] if isinstance(allowed, tuple) else allowed))


def test_environments_that_are_not_known_share_one_value(metrics: Metrics) -> None:
    metrics.environments.know(["swe"])
    for name in ("swe", "made-up", "made-up-too"):
        metrics.queue_length.at(name).set(1)
    seen = {
        sample.labels["environment"] for family in metrics.queue_length.meter.collect() for sample in family.samples
    }
    assert seen == {"swe", OTHER}


def test_an_environment_that_becomes_known_is_counted_by_name_from_then_on(metrics: Metrics) -> None:
    metrics.pool_refills.at("swe").inc()
    metrics.environments.know(["swe"])
    metrics.pool_refills.at("swe").inc()
    assert b'rollcage_pool_refills_total{environment="swe"} 1.0' in metrics.exposition()


def test_what_alerts_look_at_is_shown_before_it_happens(metrics: Metrics) -> None:
    metrics.know(["swe"])
    exposed = metrics.exposition().decode()
    for series in (
        'rollcage_calls_total{outcome="infra",tool="shell"} 0.0',
        'rollcage_misroutes_refused_total{environment="swe"} 0.0',
        'rollcage_infra_failures_total{cause="key_refused",environment="swe"} 0.0',
        'rollcage_verdicts_total{cause="evicted",environment="swe",verdict="masked"} 0.0',
        'rollcage_call_failures_total{cause="claim_timed_out",tool="shell"} 0.0',
        'rollcage_call_failures_total{cause="evicted",tool="shell"} 0.0',
        'rollcage_queue_seconds_bucket{environment="swe",le="+Inf"} 0.0',
    ):
        assert series in exposed
    assert 'cause="out_of_memory",environment="swe",verdict="masked"' not in exposed


def test_knowing_an_environment_again_loses_no_count(metrics: Metrics) -> None:
    metrics.know(["swe"])
    metrics.pool_refills.at("swe").inc()
    metrics.know(["swe", "math"])
    assert b'rollcage_pool_refills_total{environment="swe"} 1.0' in metrics.exposition()


@pytest.mark.parametrize("ending", EndCause)
def test_every_end_of_a_sandbox_is_shown_as_the_verdict_that_it_leads_to(ending: EndCause) -> None:
    judgement = judge(SandboxEnded(Ending(ending), delivered=True))
    if judgement.word and judgement.cause:
        assert word_of(judgement.cause) is judgement.word


def test_no_more_environments_are_known_than_a_metric_can_bear() -> None:
    environments = Environments()
    environments.know([f"e{number:04}" for number in range(10 * MOST_ENVIRONMENTS)])
    assert len({environments(f"e{number:04}") for number in range(10 * MOST_ENVIRONMENTS)}) == MOST_ENVIRONMENTS + 1


def test_a_label_too_many_or_too_few_is_refused(metrics: Metrics) -> None:
    with pytest.raises(ValueError, match="zip"):
        metrics.calls.at(ToolLabel.SHELL)


def test_two_services_in_one_process_count_apart() -> None:
    one, other = Metrics(CollectorRegistry()), Metrics(CollectorRegistry())
    one.calls_replayed.at().inc()
    assert b"rollcage_calls_replayed_total 1.0" in one.exposition()
    assert b"rollcage_calls_replayed_total 0.0" in other.exposition()


def test_claims_are_told_apart_from_a_millisecond_on(metrics: Metrics) -> None:
    metrics.claim_seconds.at("swe").observe(0.0005)
    assert b'rollcage_claim_seconds_bucket{environment="other",le="0.001"} 1.0' in metrics.exposition()


def test_every_built_in_tool_has_a_label_of_its_own() -> None:
    assert {tool_label(tool, custom=()) for tool in BuiltinTool} == set(ToolLabel) - {
        ToolLabel.CUSTOM,
        ToolLabel.UNKNOWN,
    }


@pytest.mark.parametrize(
    ("tool", "label"),
    [("lint", ToolLabel.CUSTOM), ("rm -rf", ToolLabel.UNKNOWN), ("custom", ToolLabel.UNKNOWN)],
)
def test_tools_that_somebody_named_share_a_label(tool: str, label: ToolLabel) -> None:
    assert tool_label(tool, custom={"lint"}) is label


def test_every_outcome_of_a_toolserver_has_a_label() -> None:
    assert {OutcomeLabel(outcome.value) for outcome in OutcomeClass} < set(OutcomeLabel)


def test_every_reason_for_which_a_sandbox_does_not_start_has_a_label() -> None:
    assert {StartLabel(reason.value) for reason in Reason} == set(StartLabel)


@pytest.mark.parametrize(
    "error",
    [ClaimTimedOut, QueueFull, StoreUnavailable, StoreRecovering, NoSandbox, StillRunning],
)
def test_every_refusal_that_a_trainer_may_repeat_has_a_label(error: type[RollcageError]) -> None:
    assert refusal_label(error.code) == error.code


def test_refusals_that_nobody_planned_share_a_label() -> None:
    assert refusal_label("made_up") is refusal_label("") is RefusalLabel.INTERNAL


def test_causes_and_refusals_share_a_label_and_have_no_word_in_common() -> None:
    assert not set(map(str, Cause)) & set(map(str, RefusalLabel))


def test_statuses_are_told_apart_by_their_hundreds() -> None:
    assert [status_label(status) for status in (200, 307, 409, 503)] == list(StatusLabel)
