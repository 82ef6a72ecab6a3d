"""The toolserver's binary, compiled once, and sandboxes made of it that are nothing but local processes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from lab.images import build_toolserver
from support.local_toolserver import Launcher, LocalToolserver, Start
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target


@pytest.fixture
def workdir(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def launcher(binary: Path, workdir: Path, tmp_path: Path) -> Launcher:
    return Launcher(binary, workdir, tmp_path / "log")


@pytest.fixture
def start(launcher: Launcher) -> Iterator[Start]:
    with ExitStack() as running:
        yield lambda **config: running.enter_context(launcher.start(**config))


@pytest.fixture
def sandbox(start: Start) -> LocalToolserver:
    """A sandbox with nothing configured, and ready."""
    made = start()
    until(made.ready)
    return made
