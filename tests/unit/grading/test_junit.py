"""Reports may be forged or built to break a parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollcage.grading import Ran
from rollcage.grading.builtins.junit import Cases, read_report
from support.graders import ScriptedSandbox, context, score

BOMB = (
    b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]>'
    b"<testsuite><testcase name='&b;'/></testsuite>"
)


@pytest.mark.parametrize(
    ("report", "found"),
    [
        (b"<testsuites><testsuite><testcase name='a'/></testsuite></testsuites>", Cases(1, 1)),
        (
            b"<testsuite><testcase name='a'><failure>no</failure></testcase><testcase name='b'/></testsuite>",
            Cases(2, 1),
        ),
        (
            b"<testsuite><testcase name='a'><error/></testcase><testcase name='b'><skipped/></testcase></testsuite>",
            Cases(2, 0),
        ),
        (b"<t><testcase name='a'/><testcase name='a'><failure/></testcase></t>", Cases(1, 0)),
        (b"<t><testcase name='a'/><testcase name='a'/><testcase name='a'/></t>", Cases(1, 1)),
        (b"<testsuite tests='100' failures='0'/>", Cases(0, 0)),
        (BOMB, None),
        (b"<!DOCTYPE x SYSTEM 'file:///etc/passwd'><x/>", None),
        (b"<a>" * 1000 + b"</a>" * 1000, None),
        (b"", None),
        (b"passed", None),
        (b"<testsuite><testcase name='a'/>", None),
    ],
)
def test_a_report_is_counted_by_its_test_cases(report: bytes, found: Cases | None) -> None:
    assert read_report(report) == found


@given(st.binary(max_size=500))
def test_no_bytes_break_the_reader(report: bytes) -> None:
    read_report(report)


@pytest.mark.parametrize(
    ("fields", "exit_code", "value"),
    [
        ({}, 0, 0.5),
        ({"tests": 4}, 0, 0.25),
        ({"strict": True}, 0, 0.0),
        ({"strict": True, "tests": 2}, 0, 0.0),
    ],
)
def test_the_share_that_passed_counts(fields: dict[str, object], exit_code: int, value: float) -> None:
    report = b"<t><testcase name='a'/><testcase name='b'><failure/></testcase></t>"
    sandbox = ScriptedSandbox(Ran("", exit_code, files={"r.xml": report}))
    grader = {"kind": "command", "command": "t", "junit": "r.xml", **fields}
    assert score(grader, context(sandbox=sandbox)).value == value


@pytest.mark.parametrize(
    "ran",
    [Ran("", 1), Ran("", 0, timed_out=True), Ran("", None, ended=True), Ran("", 0)],
    ids=["failed", "timed out", "took its sandbox down", "wrote no report"],
)
def test_a_strict_pass_takes_a_report_and_an_exit_code(ran: Ran) -> None:
    report = {} if ran.passed else {"r.xml": b"<t><testcase name='a'/></t>"}
    sandbox = ScriptedSandbox(Ran(ran.output, ran.exit_code, ran.timed_out, ran.ended, report))
    grader = {"kind": "command", "command": "t", "junit": "r.xml", "strict": True}
    assert score(grader, context(sandbox=sandbox)).value == 0.0
