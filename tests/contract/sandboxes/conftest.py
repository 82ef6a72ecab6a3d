"""The toolserver's binary, compiled once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.images import build_toolserver

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def toolserver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("toolserver") / "toolserver"
    build_toolserver(target)
    return target
