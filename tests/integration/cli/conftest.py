"""The command in this process, a gateway in one of its own."""

from __future__ import annotations

import pytest

from integration.client.conftest import binary, client, stage, url
from support.commands import Command
from support.gateways import TOKEN

__all__ = ["binary", "client", "stage", "url"]


@pytest.fixture
def rollcage(url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    monkeypatch.setenv("ROLLCAGE_URL", url)
    monkeypatch.setenv("ROLLCAGE_TOKEN", TOKEN)
    return Command(monkeypatch, capsys)
