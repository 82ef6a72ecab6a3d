"""What people are shown, on terminals of several widths."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from rich.console import Console

from rollcage.cli import showing
from rollcage.cli.reading import flat
from rollcage.cli.showing import cell, figure, moment, say_table

ID = "trace_0123456789abcdef0123456789abcdef"
COLUMNS = ("rollout", "run", "calls #", "cause", "about ~")
ROW = (ID, "run-7", 3, None, "some words that may be folded where there is no room for them")


def shown(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.setattr(showing, "console", lambda: Console(width=width, highlight=False))
    say_table(COLUMNS, [ROW, ROW], nothing="nothing")
    return capsys.readouterr().out.splitlines()


def test_a_table_with_room_has_a_line_for_each_thing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(200, monkeypatch, capsys)
    assert len(lines) == 3
    assert lines[1].split(maxsplit=4)[:4] == [ID, "run-7", "3", "-"]
    assert not [line for line in lines if line != line.rstrip()]


def test_prose_is_folded_first(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown(90, monkeypatch, capsys)
    assert [line.split()[0] for line in lines if ID in line] == [ID, ID]
    assert max(map(len, lines)) <= 90


def test_without_room_for_a_table_one_thing_comes_below_the_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(60, monkeypatch, capsys)
    assert lines[:3] == [f"rollout  {ID}", "run      run-7", "calls    3"]
    assert max(map(len, lines)) <= 60


@pytest.mark.parametrize(
    ("value", "expected"), [(1.0, "1"), (0.0, "0"), (0.12345, "0.123"), (-0.5, "-0.5"), (123456.0, "123456")]
)
def test_a_score_has_no_more_places_than_it_needs(value: float, expected: str) -> None:
    assert (figure(value), cell(value).plain) == (expected, expected)


def test_a_time_of_today_comes_without_its_date() -> None:
    at = datetime(2026, 5, 4, 12, 30, tzinfo=UTC)
    assert moment(at, now=at) == f"{at.astimezone():%H:%M:%S}"
    assert moment(at, now=datetime(2026, 5, 9, tzinfo=UTC)).startswith("2026-05-04 ")


def test_evidence_is_told_by_its_paths() -> None:
    piece = {"ending": {"cause": "exited", "details": {"signal": "SIGKILL"}}, "calls": 1}
    assert list(flat(piece)) == [("ending.cause", "exited"), ("ending.details.signal", "SIGKILL"), ("calls", "1")]
