"""A gateway as a process of its own, over a real store and real toolservers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.rollouts.conftest import binary, stage
from rollcage.client import Client
from support.gateway_process import started
from support.gateways import TOKEN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollcage.store.server import Server
    from support.stage import Stage

__all__ = ["binary", "stage"]


@pytest.fixture
def url(stage: Stage, server: Server) -> Iterator[str]:
    assert stage.settings.url == server.url
    with started(server.url) as gateway:
        yield f"http://127.0.0.1:{gateway.port}"


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url, TOKEN) as made:
        yield made
