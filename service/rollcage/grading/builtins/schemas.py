"""
Whether the answer is JSON of a given shape.
"""

from rollcage.core.graders import SchemaGrader
from rollcage.grading.builtins.selecting import select
from rollcage.grading.protocol import Context, Score


def schema_score(grader: SchemaGrader, context: Context) -> Score:
    """Return 1 if it matches, else 0 and the first mistakes; a schema that is none breaks the grading."""
    # Worth a third of a worker's start, and seldom needed.
    from jsonschema import Draft202012Validator  # noqa: PLC0415
    from referencing import Registry  # noqa: PLC0415

    schema = dict(grader.json_schema)
    Draft202012Validator.check_schema(schema)
    # An empty registry: nothing is fetched from anywhere.
    checked = Draft202012Validator(schema, registry=Registry())
    mistakes = sorted(checked.iter_errors(select(grader.found, context)), key=lambda one: one.json_path)
    return Score(float(not mistakes), notes=tuple(f"{one.json_path}: {one.message}" for one in mistakes[:5]))
