"""
How rollouts of an environment are graded, as its YAML has it under ``spec.grading``.

What a grader is made of stands in ``graders``; running it is the business of ``grading``.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from rollcage.core.environment_types import Flag, Part, whole
from rollcage.core.graders import Grader, Place, read_grader

Score = Annotated[float, Field(ge=-1_000_000_000, le=1_000_000_000)]


class Range(Part):
    """What a score may be; anything else is refused, never trained on."""

    lowest: Score = 0
    """The lowest score."""
    highest: Score = 1
    """The highest score."""

    @model_validator(mode="after")
    def _is_a_range(self) -> Self:
        if self.lowest >= self.highest:
            raise ValueError("lowest must be below highest")
        return self

    def __contains__(self, score: float) -> bool:
        # False for NaN, too.
        return self.lowest <= score <= self.highest


class Grading(Part):
    """How rollouts are graded."""

    grader: Mapping[str, Any]
    """What gives the score: kind, and what that kind is told. Kinds can be put into each other."""
    range: Range = Range()
    """What a score may be; anything else is refused."""
    timeout_seconds: Annotated[int, whole(1, 540)] = 300
    """How long the grader may take, sandboxes of its own included."""
    artifacts: Annotated[tuple[Place, ...], Field(max_length=16)] = ()
    """Directories taken out of the sandbox when it is graded, absolute or relative to the work directory."""
    artifact_bytes: Annotated[int, whole(1024, 67_108_864)] = 8_388_608
    """How much may be taken out; of more than that nothing is, by the model's own doing."""
    without_calls: Flag = True
    """Whether a rollout that made no call is graded on its answer alone. If not, a model can avoid its grade so."""

    @field_validator("grader")
    @classmethod
    def _grader_is_known(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            read_grader(given)
        except ValidationError as error:
            raise ValueError("; ".join(f"{_place(one['loc'])}{one['msg']}" for one in error.errors())) from error
        return given

    @property
    def tree(self) -> Grader:
        """The grader, read."""
        return read_grader(self.grader)


def _place(location: tuple[int | str, ...]) -> str:
    return f"{'.'.join(map(str, location))}: " if location else ""
