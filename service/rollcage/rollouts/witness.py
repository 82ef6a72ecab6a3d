"""
What others may want to count: past-tense facts, told as they happen.

Whoever listens must be quick and must not raise. By default nobody does.
"""

from typing import Final, Protocol

from rollcage.core.verdict_words import Cause, Word
from rollcage.rollouts.actions import Outcome


class Witness(Protocol):
    """Is told what happened."""

    def call_answered(
        self,
        *,
        environment: str,
        tool: str,
        outcome: Outcome,
        seconds: float,
        replayed: bool,
        output_bytes: int,
        truncated: bool,
    ) -> None:
        """Hear that a call got its answer; *replayed*: one that was made before."""

    def call_failed(self, *, environment: str, tool: str, seconds: float, why: Cause | str) -> None:
        """Hear that a call got no result: its rollout is masked for a cause, or the call was refused with a code."""

    def sandbox_claimed(self, *, environment: str, seconds: float) -> None:
        """Hear that a rollout's first call has found its sandbox, after so long."""

    def waited_in_line(self, *, environment: str, seconds: float) -> None:
        """Hear that no sandbox was ready, and how long the rollout stood in line, be it in vain."""

    def rollout_moved(self, *, environment: str) -> None:
        """Hear that a sandbox was gone before any call reached it, and that the rollout asks for another."""

    def misroute_refused(self, *, environment: str) -> None:
        """Hear that a sandbox refused a call that was not meant for it."""

    def answer_lost(self, *, environment: str) -> None:
        """Hear that a call may have been delivered and was not answered; now its sandbox is asked for it."""

    def verdict_given(self, *, environment: str, word: Word, cause: Cause, calls: int) -> None:
        """Hear that this process ended a rollout, which had made so many calls."""

    def store_bypassed(self, *, environment: str) -> None:
        """Hear that Redis did not answer, and that a rollout that runs went on without."""

    def record_dropped(self, *, environment: str) -> None:
        """Hear that what a call came to while Redis was away could not be recorded afterwards."""


class _Silent:
    def call_answered(
        self,
        *,
        environment: str,
        tool: str,
        outcome: Outcome,
        seconds: float,
        replayed: bool,
        output_bytes: int,
        truncated: bool,
    ) -> None: ...

    def call_failed(self, *, environment: str, tool: str, seconds: float, why: Cause | str) -> None: ...

    def sandbox_claimed(self, *, environment: str, seconds: float) -> None: ...

    def waited_in_line(self, *, environment: str, seconds: float) -> None: ...

    def rollout_moved(self, *, environment: str) -> None: ...

    def misroute_refused(self, *, environment: str) -> None: ...

    def answer_lost(self, *, environment: str) -> None: ...

    def verdict_given(self, *, environment: str, word: Word, cause: Cause, calls: int) -> None: ...

    def store_bypassed(self, *, environment: str) -> None: ...

    def record_dropped(self, *, environment: str) -> None: ...


SILENT: Final[Witness] = _Silent()
