"""
The console in a real browser, over a gateway with a real Redis; each test finds it empty.

One browser for all of them, since it takes longest to start, and so one loop for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest_asyncio
from playwright.async_api import expect
from redis.asyncio import Redis

from integration.conftest import server
from rollcage.store.settings import Settings
from support.console import Scene, chromium, scene

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from rollcage.store.server import Server

__all__ = ["server"]

# Far more than anything takes, also on a busy machine; what is expected is waited for, not slept for.
expect.set_options(timeout=60_000)


@pytest_asyncio.fixture(name="scene", loop_scope="session")
async def _scene(server: Server) -> AsyncIterator[Scene]:
    async with Redis.from_url(server.url) as redis:
        await redis.flushall()
    async with scene(Settings(server.url)) as made:
        yield made


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with chromium() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """Lend a page on which nothing may go wrong unseen."""
    async with await browser.new_context() as context:
        opened = await context.new_page()
        wrong: list[str] = []
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        yield opened
    assert wrong == []
