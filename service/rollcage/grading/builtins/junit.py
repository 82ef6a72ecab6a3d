"""
Read a JUnit report that hostile code may have written: no entities, no depth, nothing but counted test cases.
"""

from dataclasses import dataclass
from typing import Any, Final
from xml.parsers import expat

# Deeper than any test runner nests, and far below what hurts.
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class Cases:
    """How many different test cases there were, and how many passed; one that is told twice must pass twice."""

    all: int
    passed: int


class _Unwanted(Exception):
    pass


def read_report(report: bytes) -> Cases | None:
    """Count the test cases, or return None for what is no report."""
    outcomes: dict[str, bool] = {}
    path: list[str] = []
    current = ""

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal current
        if len(path) >= _DEEPEST:
            raise _Unwanted
        if tag == "testcase":
            current = f"{attributes.get('classname', '')}::{attributes.get('name', '')}"
            outcomes.setdefault(current, True)
        elif tag in {"failure", "error", "skipped"} and "testcase" in path:
            outcomes[current] = False
        path.append(tag)

    def end(_tag: str) -> None:
        path.pop()

    def refuse(*_: Any) -> None:
        raise _Unwanted

    parser = expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(report, True)  # noqa: FBT003 - the library's own way to say that this is all
    except (expat.ExpatError, _Unwanted):
        return None
    return Cases(len(outcomes), sum(outcomes.values()))
