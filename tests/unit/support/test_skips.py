from __future__ import annotations

from support.skips import unexplained

SKIP = "tests/a.py::test_x: no valkey-server on the PATH"


def test_a_skip_that_is_listed_is_explained() -> None:
    assert unexplained([SKIP], "no valkey-server\n") == []


def test_a_skip_that_is_not_listed_is_unexplained() -> None:
    assert unexplained([SKIP], "no redis-server\n") == [SKIP]


def test_comments_and_empty_lines_explain_nothing() -> None:
    assert unexplained([SKIP], "# no valkey-server\n\n") == [SKIP]
