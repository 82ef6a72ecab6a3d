"""Rules for the whole suite: a skipped test says why, and in CI only known reasons pass."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from support import skips

if TYPE_CHECKING:
    import pytest
    from _pytest.terminal import TerminalReporter

ALLOWED = Path(__file__).parent / "allowed-skips.txt"


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
