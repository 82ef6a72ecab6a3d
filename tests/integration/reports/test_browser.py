"""The pages in a real browser: nothing runs, nothing is asked for, nothing sticks out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.reports.burst import burst_page
from rollcage.reports.run import run_page
from support.console import chromium
from support.reports import BURST, RUN, hostile_burst, hostile_run

if TYPE_CHECKING:
    from pathlib import Path

PAGES = {
    "burst": burst_page(BURST),
    "run": run_page(RUN),
    "hostile burst": hostile_burst(),
    "hostile run": hostile_run(),
}


@pytest.mark.parametrize("name", PAGES)
async def test_a_page_fits_every_screen_and_does_nothing(name: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(PAGES[name], encoding="utf-8")
    async with chromium() as browser:
        for width in (390, 1280):
            for scheme in ("light", "dark"):
                context = await browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
                page = await context.new_page()
                happened: list[str] = []
                page.on("console", lambda message: happened.append(message.text))  # noqa: B023 - read below
                page.on("dialog", lambda dialog: happened.append(dialog.message))  # noqa: B023
                page.on("request", lambda request: happened.append(request.url))  # noqa: B023
                await page.goto(file.as_uri())
                assert happened == [file.as_uri()]
                assert await page.evaluate("document.documentElement.scrollWidth") == width
                assert await page.locator("figure.card svg, figure.card .nothing").count() >= 5
                await context.close()
