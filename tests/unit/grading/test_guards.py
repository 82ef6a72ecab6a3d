"""Known ways to a reward without the work, and the honest work beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollcage.core.guards import PythonGuard
from rollcage.grading.builtins.python_syntax import complaints, same_program
from support.graders import context, files, score

FULL = {"kind": "text", "expected": "item.word", "found": "item.word"}
HONEST = "def kernel(m, i):\n    m.store(i, m.load(i) * 2)\n\ndef solve(m):\n    m.launch(kernel, 4)\n"
PYTHON = {
    "kind": "python",
    "found": "file:work.py",
    "defines": ["kernel", "solve"],
    "uses": ["m.launch"],
    "imports": ["math"],
    "forbids": ["eval", "__import__"],
    "noIdentity": True,
}


def guarded(guard: dict[str, Any], **fields: Any) -> list[str]:
    tree = {"kind": "guards", "guards": [guard], "grader": FULL}
    found = score(tree, context(**{"item": {"word": "x", "reference": HONEST}, **fields}))
    assert found.value == (0.0 if found.notes else 1.0)
    return list(found.notes)


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (HONEST, []),
        ("import math\n" + HONEST, []),
        (None, ["the file is missing, or no Python"]),
        ("def kernel(:", ["the file is missing, or no Python"]),
        ("def solve(m):\n    m.launch(1)\n", ["kernel is not defined"]),
        (HONEST.replace("m.launch(kernel, 4)", "m.note = 1"), ["m.launch is not used"]),
        ("import torch\n" + HONEST, ["torch is imported"]),
        ("from torch.nn import f\n" + HONEST, ["torch.nn is imported", "torch.nn.f is imported"]),
        (HONEST + "x = __import__('torch')\n", ["__import__ is used"]),
        (HONEST + "x = builtins.eval('1')\n", ["eval is used"]),
        (HONEST.replace("m.store(i, m.load(i) * 2)", "return m"), ["kernel does nothing"]),
        (HONEST.replace("m.store(i, m.load(i) * 2)", "'''doc'''"), ["kernel does nothing"]),
        ("x = " + "(" * 500 + ")" * 500, ["the file is missing, or no Python"]),
        ("x = " + "-" * 100_000 + "1", ["the file is missing, or no Python"]),
        ("x = " + "a" + ".a" * 60_000, ["the file is missing, or no Python"]),
        ("x = '" + "a" * 300_000 + "'", ["the file is missing, or no Python"]),
        ("\0", ["the file is missing, or no Python"]),
    ],
    ids=[
        *("honest work", "an allowed import", "no file", "no Python", "no kernel", "a kernel that is not launched"),
        *("a library", "a part of a library", "a hidden import", "a hidden name", "an identity", "a docstring only"),
        *("parentheses", "signs", "attributes", "a long text", "a zero byte"),
    ],
)
def test_python_is_judged_by_its_syntax_tree(work: str | None, says: list[str]) -> None:
    given_files = files() if work is None else files(work__py=work)
    assert guarded(PYTHON, artifacts=given_files) == says


@pytest.mark.parametrize(
    ("work", "same"),
    [
        (HONEST, True),
        ("# mine\n" + HONEST.replace("    ", "\t"), True),
        (HONEST.replace("m.load", "m.store"), False),
        (HONEST.replace("(m, i)", "(q, j)").replace("m.store(i, m.load(i)", "q.store(j, q.load(j)"), True),
        (HONEST.replace("def kernel(m, i):", "def kernel(m: int, i: int) -> None:\n    '''Mine.'''"), True),
        (HONEST.replace("* 2", "* 3"), False),
        ("", False),
    ],
    ids=["itself", "other layout", "other methods", "other names", "types and words", "another constant", "nothing"],
)
def test_the_reference_is_known_again(work: str, same: bool) -> None:  # noqa: FBT001 - a column of the table
    guard = {"kind": "reference", "reference": "item.reference", "found": "file:work.py"}
    assert bool(guarded(guard, artifacts=files(work__py=work))) is same


@pytest.mark.parametrize(("answer", "trips"), [("N/A", True), (" n a ", True), ("0.", True), ("42", False)])
def test_an_answer_that_says_nothing_is_known(answer: str, trips: bool) -> None:  # noqa: FBT001 - same
    guard = {"kind": "constant", "answers": ["n/a", "0"]}
    assert bool(guarded(guard, answer=answer)) is trips


@settings(max_examples=200)
@given(st.text(alphabet="()[]{}:=,.\n\t abdef01'\"\\#@*-+lamwhinrtoc", max_size=200))
def test_no_text_breaks_the_guards(text: str) -> None:
    complaints(text, PythonGuard.model_validate(PYTHON))
    same_program(text, text)
