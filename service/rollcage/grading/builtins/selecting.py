"""
Find the value that a grader speaks of: in the answer, in the dataset item, among the artifacts.

What the item lacks is the dataset's fault and a refusal; what the answer or
the artifacts lack is the model's, and None.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rollcage.grading.protocol import Context, Refused


def select(source: str, context: Context) -> Any:
    """Return the value, or None where the model did not give it."""
    if source.startswith("file:"):
        return context.artifacts.text(source.removeprefix("file:"))
    root, *path = source.split(".")
    if root == "item":
        found, value = _walk(context.item, path)
        if not found:
            raise Refused(f"the item has no {'.'.join(path)}")
        return value
    if not path:
        return context.answer.text
    return _walk(context.answer.json, path[1:])[1]


def texts(value: Any) -> tuple[str, ...]:
    """Return a value that may be one text or several as several; what is neither is none."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return (str(value),)
    if isinstance(value, Sequence):
        return tuple(str(one) for one in value if isinstance(one, (str, int, float)))
    return ()


def _walk(value: Any, path: Sequence[str]) -> tuple[bool, Any]:
    for name in path:
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return False, None
    return True, value
