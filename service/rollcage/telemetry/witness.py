"""
Count what the use cases tell of.

Knows which words become which labels. Quick, and never raises: a call must not
fail because it could not be counted.
"""

from collections.abc import Callable, Collection
from enum import StrEnum

from rollcage.core.verdict_words import Cause, Word
from rollcage.telemetry.labels import OutcomeLabel, refusal_label, tool_label
from rollcage.telemetry.metrics import Metrics


class MetricsWitness:
    """Turns what happened into metrics; *custom_tools* returns the names of an environment's own tools."""

    def __init__(self, metrics: Metrics, *, custom_tools: Callable[[str], Collection[str]]) -> None:
        self._metrics = metrics
        self._custom_tools = custom_tools

    def call_answered(
        self,
        *,
        environment: str,
        tool: str,
        outcome: StrEnum,
        seconds: float,
        replayed: bool,
        output_bytes: int,
        truncated: bool,
    ) -> None:
        """Count a call that got its answer; *replayed*: one that was made before."""
        metrics = self._metrics
        if replayed:
            # Counted when it was first made.
            metrics.calls_replayed.at().inc()
            return
        label = tool_label(tool, custom=self._custom_tools(environment))
        metrics.calls.at(label, OutcomeLabel(outcome.value)).inc()
        metrics.call_seconds.at(label).observe(seconds)
        metrics.output_bytes.at(label).observe(output_bytes)
        if truncated:
            metrics.outputs_truncated.at(label).inc()

    def call_failed(self, *, environment: str, tool: str, seconds: float, why: Cause | str) -> None:
        """Count a call that was left without a result: why, by its rollout's verdict or by an error's code."""
        metrics = self._metrics
        label = tool_label(tool, custom=self._custom_tools(environment))
        metrics.calls.at(label, OutcomeLabel.INFRA).inc()
        metrics.call_seconds.at(label).observe(seconds)
        metrics.call_failures.at(label, why if isinstance(why, Cause) else refusal_label(why)).inc()

    def sandbox_claimed(self, *, environment: str, seconds: float) -> None:
        """Count a claim that took so long."""
        self._metrics.claim_seconds.at(environment).observe(seconds)

    def waited_in_line(self, *, environment: str, seconds: float) -> None:
        """Count a rollout that found no sandbox ready, whether it got one in the end or not."""
        self._metrics.queue_seconds.at(environment).observe(seconds)

    def rollout_moved(self, *, environment: str) -> None:
        """Count a rollout that asks for another sandbox before anything reached its first."""
        self._metrics.rollouts_moved.at(environment).inc()

    def misroute_refused(self, *, environment: str) -> None:
        """Count a call that a sandbox refused as not meant for it."""
        self._metrics.misroutes_refused.at(environment).inc()

    def answer_lost(self, *, environment: str) -> None:
        """Count a call that may have been delivered and was not answered."""
        self._metrics.calls_maybe_delivered.at(environment).inc()

    def verdict_given(self, *, environment: str, word: Word, cause: Cause, calls: int) -> None:
        """Count a rollout that this process ended."""
        count_verdict(self._metrics, environment=environment, word=word, cause=cause, calls=calls)

    def store_bypassed(self, *, environment: str) -> None:
        """Count a call of a running rollout that went on without Redis."""
        self._metrics.store_bypassed.at(environment).inc()

    def record_dropped(self, *, environment: str) -> None:
        """Count a result that could not be recorded after Redis was away."""
        self._metrics.records_dropped.at(environment).inc()


def count_verdict(metrics: Metrics, *, environment: str, word: Word, cause: Cause, calls: int) -> None:
    """Count a rollout that ended, with as many calls."""
    metrics.verdicts.at(environment, word, cause).inc()
    metrics.rollout_calls.at(environment, word).observe(calls)
    if word is Word.MASKED:
        metrics.infra_failures.at(environment, cause).inc()
