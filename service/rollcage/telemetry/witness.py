"""
Count what the use cases tell of.

Knows which words become which labels. Quick, and never raises: a call must not
fail because it could not be counted.
"""

from collections.abc import Callable, Collection
from enum import StrEnum

from rollcage.core.verdict_words import Cause, Word
from rollcage.telemetry.labels import OutcomeLabel, tool_label
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

    def sandbox_claimed(self, *, environment: str, seconds: float) -> None:
        """Count a claim that took so long."""
        self._metrics.claim_seconds.at(environment).observe(seconds)

    def rollout_moved(self, *, environment: str) -> None:
        """Count a rollout that asks for another sandbox before anything reached its first."""
        self._metrics.rollouts_moved.at(environment).inc()

    def misroute_refused(self, *, environment: str) -> None:
        """Count a call that a sandbox refused as not meant for it."""
        self._metrics.misroutes_refused.at(environment).inc()

    def answer_lost(self, *, environment: str) -> None:
        """Count a call that may have been delivered and was not answered."""
        self._metrics.calls_maybe_delivered.at(environment).inc()

    def verdict_given(self, *, word: Word, cause: Cause) -> None:
        """Count a rollout that this process ended."""
        self._metrics.verdicts.at(word, cause).inc()
        if word is Word.MASKED:
            self._metrics.infra_failures.at(cause).inc()

    def store_bypassed(self, *, environment: str) -> None:
        """Count a call of a running rollout that went on without Redis."""
        self._metrics.store_bypassed.at(environment).inc()

    def record_dropped(self, *, environment: str) -> None:
        """Count a result that could not be recorded after Redis was away."""
        self._metrics.records_dropped.at(environment).inc()
