"""
What a grader can be made of: measures, and what is put around them.

Only the words and their bounds; what each comes to is computed in ``grading``.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, TypeAdapter

from rollcage.core.environment_types import DNS_NAME, Flag, Part, whole
from rollcage.core.guards import Guard, Source

# A path in a sandbox, absolute or relative to the work directory.
Place = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\s]+$")]
Share = Annotated[float, Field(ge=0, le=1)]
Finite = Annotated[float, Field(ge=-1_000_000_000, le=1_000_000_000)]
Amount = Annotated[float, Field(ge=0, le=1_000_000_000)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Function = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$", max_length=512)]


class Measure(StrEnum):
    """How two sets are compared."""

    F1 = "f1"
    PRECISION = "precision"
    RECALL = "recall"


class Members(StrEnum):
    """What the members of a set are."""

    PATHS = "paths"
    FACTS = "facts"


class Form(StrEnum):
    """What two texts may differ in and still be the same."""

    CASE = "case"
    SPACE = "space"
    PUNCTUATION = "punctuation"
    ACCENTS = "accents"
    ARTICLES = "articles"


class Counted(StrEnum):
    """What a penalty is reckoned by."""

    CALLS = "calls"
    REPEATED_CALLS = "repeated_calls"
    FAILED_CALLS = "failed_calls"
    MALFORMED_CALLS = "malformed_calls"
    WALL_SECONDS = "wall_seconds"
    OUTPUT_BYTES = "output_bytes"


class FunctionGrader(Part):
    """A team's own function."""

    kind: Literal["function"]
    function: Function
    options: Mapping[str, Any] = {}


class SetGrader(Part):
    """How well the found set is the expected one."""

    kind: Literal["set"]
    expected: Source
    found: Source = "answer"
    measure: Measure = Measure.F1
    members: Members = Members.FACTS


class Close(Part):
    """Part of the credit for a number that is nearly right."""

    within: Share
    score: Share = 0.5


class NumberGrader(Part):
    """Whether a number is the expected one: units, percent and rounding told apart from wrong."""

    kind: Literal["number"]
    expected: Source
    found: Source = "answer"
    within: Share = 0.0
    """How far it may be off for full credit, relative to the expected."""
    close: Close | None = None
    percent: Flag = True
    """Whether 7 % is the same as 0.07, and 7."""


class TextGrader(Part):
    """Whether a text is one of the expected."""

    kind: Literal["text"]
    expected: Source
    found: Source = "answer"
    ignore: tuple[Form, ...] = (Form.CASE, Form.SPACE)
    contains: Flag = False
    """Whether it is enough that the found text contains an expected one."""


class SchemaGrader(Part):
    """Whether the answer is JSON of a given shape."""

    kind: Literal["json_schema"]
    json_schema: Annotated[Mapping[str, Any], Field(alias="schema")]
    found: Source = "answer.json"


class CommandGrader(Part):
    """Whether a command succeeds in a fresh sandbox that was given the artifacts."""

    kind: Literal["command"]
    command: Annotated[str, Field(min_length=1, max_length=16_384)]
    environment: Annotated[str, Field(pattern=DNS_NAME, max_length=63)] | None = None
    """Of which environment; the rollout's own unless given."""
    without: Annotated[tuple[str, ...], Field(max_length=64)] = ()
    """Artifacts that are left out, as patterns of names: **/conftest.py."""
    files: Annotated[Mapping[Place, Source], Field(max_length=64)] = {}
    """Written after the artifacts, over them: hidden tests out of the item, for example."""
    junit: Place | None = None
    """A JUnit report that it writes; then the score is the share of tests that passed, else 1 for exit code 0."""
    tests: Annotated[int, whole(1, 100_000)] | None = None
    """How many tests there are; fewer in the report count as failed."""
    strict: Flag = False
    """All or nothing."""
    timeout_seconds: Annotated[int, whole(1, 540)] = 120


class JudgeGrader(Part):
    """A model behind an endpoint of the team's own, asked over HTTP; if it fails, so does the grading."""

    kind: Literal["judge"]
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$", max_length=2048)]
    headers: Annotated[Mapping[str, Annotated[str, Field(pattern=r"^GRADER_[A-Z0-9_]+$")]], Field(max_length=16)] = {}
    """Headers, each with the variable of the service's process that has its value."""
    field: Annotated[str, Field(min_length=1, max_length=256)] = "score"
    """Where the answer has the score."""
    tries: Annotated[int, whole(1, 5)] = 3
    timeout_seconds: Annotated[int, whole(1, 300)] = 60


class Weighted(Part):
    """One part of a sum."""

    name: Name
    weight: Finite
    grader: "Grader"


class SumGrader(Part):
    """Parts, each with its weight."""

    kind: Literal["sum"]
    parts: Annotated[tuple[Weighted, ...], Field(min_length=1, max_length=32)]


class ClampGrader(Part):
    """A score that is held within bounds."""

    kind: Literal["clamp"]
    grader: "Grader"
    lowest: Finite | None = None
    highest: Finite | None = None


class Penalty(Part):
    """What is taken off for too much of something."""

    count: Counted
    above: Amount = 0
    each: Amount
    """For each one above."""
    most: Amount | None = None


class PenaltiesGrader(Part):
    """A score, less penalties, and never below a floor."""

    kind: Literal["penalties"]
    grader: "Grader"
    penalties: Annotated[tuple[Penalty, ...], Field(min_length=1, max_length=16)]
    floor: Finite = 0


class GuardsGrader(Part):
    """A score, unless a known hack is found."""

    kind: Literal["guards"]
    grader: "Grader"
    guards: Annotated[tuple[Guard, ...], Field(min_length=1, max_length=32)]
    score: Finite = 0
    """What a hack gets."""


Grader: TypeAlias = Annotated[
    FunctionGrader
    | SetGrader
    | NumberGrader
    | TextGrader
    | SchemaGrader
    | CommandGrader
    | JudgeGrader
    | SumGrader
    | ClampGrader
    | PenaltiesGrader
    | GuardsGrader,
    Field(discriminator="kind"),
]

for _part in (Weighted, SumGrader, ClampGrader, PenaltiesGrader, GuardsGrader):
    _part.model_rebuild()
_GRADERS: TypeAdapter[Grader] = TypeAdapter(Grader)


def read_grader(given: Mapping[str, Any]) -> Grader:
    """Read a grader, or raise pydantic's ValidationError."""
    return _GRADERS.validate_python(dict(given))
