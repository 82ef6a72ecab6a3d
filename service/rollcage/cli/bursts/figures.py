"""
Count what came of a burst, from what its trainer saw and what it did itself.

Pure. A rollout is broken by the infrastructure if the driver took its sandbox
away; whether the service noticed is compared with that, never assumed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Any, Final

from rollcage.cli.bursts.trainer import Played
from rollcage.core.verdict_words import Word

_FEWEST: Final = 2


@dataclass(frozen=True, slots=True)
class Figures:
    """A burst in numbers."""

    rollouts: int
    calls: int
    """Answers that the model was shown."""
    distinct_sandboxes: int
    trained: int
    masked: int
    masked_expected: int
    """Rollouts whose sandbox the driver took away."""
    false_zeros: int
    """Of those, the ones that were not masked, or got a score, or whose model was shown an answer afterwards."""
    false_masks: int
    """Rollouts that are masked although nobody touched their sandbox."""
    spoiled: int
    """Rollouts that their model spoiled."""
    spoiled_trained: int
    graded: int
    """Rollouts that got a score."""
    wrong_scores: int
    """Rollouts that nobody touched and that got another score than their answer deserves, or none."""
    wrong_outputs: int
    """Outputs that are not what the call should have come to: from a used sandbox, of another call, of a second run."""
    unanswered: int
    """Rollouts that nobody touched and that were refused a call."""
    seconds: float
    first_answer_p50: float
    first_answer_p95: float
    call_p50: float

    @property
    def all_is_well(self) -> bool:
        """Whether the service kept its promises."""
        broken = self.false_zeros + self.false_masks + self.wrong_scores + self.wrong_outputs + self.unanswered
        return not broken and self.distinct_sandboxes == self.rollouts and self.masked == self.masked_expected

    def as_json(self) -> dict[str, Any]:
        """Return them for programs."""
        return {name: round(value, 4) for name, value in asdict(self).items()}


def counted(played: Sequence[Played], *, seconds: float) -> Figures:
    """Count a burst that took so long."""
    struck = [one for one in played if one.struck]
    others = [one for one in played if not one.struck]
    spoiled = [one for one in played if one.script.spoils]
    firsts = [one.answers[0].seconds for one in played if one.answers and one.answers[0].good]
    later = [answer.seconds for one in played for answer in one.answers[1:] if answer.good]
    return Figures(
        rollouts=len(played),
        calls=sum(answer.good for one in played for answer in one.answers),
        distinct_sandboxes=len({one.sandbox for one in played} - {""}),
        trained=_of(played, Word.TRAINABLE),
        masked=_of(played, Word.MASKED),
        masked_expected=len(struck),
        false_zeros=sum(map(_is_false_zero, struck)),
        false_masks=_of(others, Word.MASKED),
        spoiled=len(spoiled),
        spoiled_trained=_of(spoiled, Word.TRAINABLE),
        graded=sum(one.score is not None for one in played),
        wrong_scores=sum(one.score != one.script.deserves for one in others if one.script.answer),
        wrong_outputs=sum(len(one.wrong) for one in played),
        unanswered=sum(not one.answers[-1].good for one in others if one.word != Word.MASKED),
        seconds=seconds,
        first_answer_p50=_percentile(firsts, 50),
        first_answer_p95=_percentile(firsts, 95),
        call_p50=_percentile(later, 50),
    )


def causes(played: Iterable[Played]) -> Counter[str]:
    """Count the masked rollouts by their cause."""
    return Counter(one.cause for one in played if one.word == Word.MASKED)


def _is_false_zero(struck: Played) -> bool:
    return struck.word != Word.MASKED or struck.answers[-1].good or struck.score is not None


def _of(played: Iterable[Played], word: Word) -> int:
    return sum(one.word == word for one in played)


def _percentile(values: Sequence[float], percent: int) -> float:
    if len(values) < _FEWEST:
        return values[0] if values else 0.0
    return quantiles(values, n=100, method="inclusive")[percent - 1]
