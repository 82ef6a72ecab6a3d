"""What comes along with an import, as a small installation would find out."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVICE = {"aiohttp", "cryptography", "fastapi", "kubernetes", "orjson", "redis", "structlog", "uvicorn", "yaml"}


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        pytest.param("rollcage.client", SERVICE | {"typer"}, id="the client needs httpx and pydantic"),
        pytest.param("rollcage.cli.app", SERVICE, id="the command starts without the service"),
    ],
)
def test_an_import_brings_nothing_else(module: str, unwanted: set[str]) -> None:
    told = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", told], check=True, capture_output=True, text=True).stdout
    assert not unwanted & set(loaded.split())
