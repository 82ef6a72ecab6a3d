"""The toolserver's binary, compiled once, and the tiers that this machine has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from lab.images import build_toolserver
from rollcage.sandboxes.local.tiers import BEST_FIRST, Tier
from support.local_sandboxes import OWN_ROOT, need

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def toolserver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target


@pytest.fixture(params=BEST_FIRST)
def tier(request: pytest.FixtureRequest, toolserver: Path) -> Tier:
    """Every tier, one after the other."""
    return need(request.param, toolserver)


@pytest.fixture(params=OWN_ROOT)
def own_root(request: pytest.FixtureRequest, toolserver: Path) -> Tier:
    """The tiers in which nothing that a sandbox destroys is anybody else's."""
    return need(request.param, toolserver)


@pytest.fixture
def landlock(toolserver: Path) -> Tier:
    return need(Tier.LANDLOCK, toolserver)


@pytest.fixture
def short() -> Iterator[Path]:
    """An empty directory whose path leaves room for a socket's, which pytest's do not."""
    directory = Path(tempfile.mkdtemp(prefix="rcl-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def canary() -> Iterator[Path]:
    """A file of the host that every user may read, change and remove: only isolation protects it."""
    directory = Path(tempfile.mkdtemp(prefix="rollcage-canary-"))
    directory.chmod(0o777)
    file = directory / "canary"
    file.write_text("sings")
    file.chmod(0o666)
    yield file
    shutil.rmtree(directory)
