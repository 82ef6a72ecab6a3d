"""Rules for the whole suite: what may run side by side, and that in CI only known reasons skip a test."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support import skips

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

ALLOWED = Path(__file__).parent / "allowed-skips.txt"


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Keep what shares something in one process, where there are several.

    The tests of a file share fixtures; those on the cluster share its nodes,
    which some of them take away.
    """
    for item in items:
        group = "cluster" if "cluster" in getattr(item, "fixturenames", ()) else str(item.path)
        item.add_marker(pytest.mark.xdist_group(group))


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter: TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or os.environ.get("CI") != "true":
        return
    seen = [f"{report.nodeid}: {report.longrepr[2]}" for report in reporter.stats.get("skipped", [])]
    unexplained = skips.unexplained(seen, ALLOWED.read_text())
    if unexplained:
        reporter.write_line("\n\nSkipped, but not in tests/allowed-skips.txt:", red=True)
        for skip in unexplained:
            reporter.write_line(f"  {skip}")
        session.exitstatus = 1
