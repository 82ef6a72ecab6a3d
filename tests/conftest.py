"""Rules for the whole suite: what may run side by side, no limits of time, and in CI only known reasons to skip."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from support import sharing, skips

if TYPE_CHECKING:
    from collections.abc import Generator

    from _pytest.terminal import TerminalReporter
    from xdist.remote import Producer

ALLOWED = Path(__file__).parent / "allowed-skips.txt"

# Two hundred milliseconds for an example is a limit that a busy machine misses.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


class Sharing(LoadScopeScheduling):  # type: ignore[misc] # it ships no types
    """Keeps what shares something in one process, where there are several."""

    def _split_scope(self, nodeid: str) -> str:
        return sharing.scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Sharing:
    return Sharing(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        # Several processes would run only one of them, and nobody would notice.
        raise pytest.UsageError(f"several tests are called {twice[0]}")
    items.sort(key=lambda item: sharing.turn(item.nodeid))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait for the cluster before the test's time begins to run."""
    if not sharing.is_on_the_cluster(item.nodeid):
        return (yield)
    assert item.config.cache
    alone = item.get_closest_marker("alone") is not None
    with sharing.on_the_cluster(item.config.cache.mkdir("cluster"), alone=alone):
        return (yield)


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
