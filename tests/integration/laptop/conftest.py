"""A place for each service, which must be empty when it is gone."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.dev_process import dev

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.dev_process import Dev


@contextmanager
def _place() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="rcd-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def place() -> Iterator[Path]:
    """An empty directory that every user can pass through, with a path short enough for sockets in it."""
    with _place() as directory:
        yield directory


@pytest.fixture(scope="session")
def shared() -> Iterator[Dev]:
    """A service for tests that leave it as it is; starting one takes seconds."""
    with _place() as directory, dev(directory) as started:
        yield started


@pytest.fixture
def running(place: Path) -> Iterator[Dev]:
    with dev(place) as started:
        yield started
