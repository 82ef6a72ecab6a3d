"""
Guards against known ways to a reward without the work: what each looks at.

Only the words; what trips a guard is decided in ``grading``.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from rollcage.core.environment_types import Flag, Part

# Where a value comes from: the answer's text or JSON, a field of the dataset item, a file of the artifacts.
Source = Annotated[
    str, Field(pattern=r"^(answer|answer\.json(\.[^.\s]+)*|item(\.[^.\s]+)+|file:[^\s].*)$", max_length=512)
]
Names = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=256)], ...], Field(max_length=64)]


class UntouchedGuard(Part):
    """Files that must be as they are in a fresh sandbox: changed, added or removed ones trip it."""

    kind: Literal["untouched"]
    files: Annotated[Names, Field(min_length=1)]
    """Patterns of names among the artifacts: tests/**."""


class ConstantGuard(Part):
    """Answers that say nothing: any of these trips it."""

    kind: Literal["constant"]
    answers: Annotated[Names, Field(min_length=1)]
    found: Source = "answer"


class ReferenceGuard(Part):
    """The reference itself handed in as the work; layout, comments and names of variables make no difference."""

    kind: Literal["reference"]
    reference: Source
    found: Source


class PythonGuard(Part):
    """What a Python file must and must not contain, by its syntax tree; a file that does not parse trips it."""

    kind: Literal["python"]
    found: Source
    defines: Names = ()
    """Functions that must be defined at the top."""
    uses: Names = ()
    """Names, dotted ones too, that must be called somewhere that is reached from *defines*."""
    imports: Names | None = None
    """The only modules that may be imported; any unless given."""
    forbids: Names = ()
    """Names, dotted ones too, that must not appear."""
    no_identity: Flag = False
    """Whether a function of *defines* that only hands an argument through trips it."""


Guard: TypeAlias = Annotated[UntouchedGuard | ConstantGuard | ReferenceGuard | PythonGuard, Field(discriminator="kind")]
