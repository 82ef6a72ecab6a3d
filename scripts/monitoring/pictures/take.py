"""
Put a service to work, and take a picture of each dashboard over it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
import structlog

from lab.images import build_toolserver
from monitoring.pictures.asking import Window, answers
from monitoring.pictures.page import WIDTH, inside, page
from monitoring.write import TARGET
from support.busy_service import busy_service
from support.console import chromium
from support.prometheus import scraping_all

if TYPE_CHECKING:
    from support.busy_service import BusyService
    from support.prometheus import Prometheus

RULES: Final = sorted(TARGET.parent.glob("rules/*.yaml"))
# What a pod has in a cluster, so that legends are as long as there.
LABELS: Final = {"namespace": "rollcage", "pod": "rollcage-gateway-6f7c9d5b8-x2v4q"}


async def take(into: Path, *, minutes: float) -> None:
    """Let a service work for so long, and write a picture of each dashboard."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        build_toolserver(home / "toolserver")
        async with busy_service(home / "toolserver") as busy:
            targets = [{"targets": [busy.service.url.removeprefix("http://")], "labels": LABELS}]
            with scraping_all(targets, rules=RULES, home=home) as prometheus:
                begin = time.time()
                await _work(busy, prometheus, until=begin + minutes * 60)
                await photograph(prometheus, Window(begin, time.time()), into)


async def photograph(prometheus: Prometheus, window: Window, into: Path) -> None:
    """Write a picture of each dashboard about this time."""
    async with chromium() as browser:
        shown = await browser.new_page(viewport={"width": WIDTH, "height": 800})
        for file in sorted(TARGET.glob("*.json")):
            board = json.loads(file.read_text())
            chosen = _chosen(board)
            answered = {
                place: await answers(
                    panel, chosen=chosen, prometheus=prometheus, window=window, width=inside(panel["gridPos"])
                )
                for place, panel in enumerate(board["panels"])
                if panel["type"] != "row"
            }
            await shown.set_content(page(board, answered, window=window))
            picture = into / f"{file.stem}.png"
            await shown.screenshot(path=picture, full_page=True)
            print(picture)


def _chosen(board: Any) -> dict[str, str]:
    """Choose everything that can be chosen at the top."""
    variables = board["templating"]["list"]
    return {one["name"]: one["allValue"] for one in variables if one["type"] == "query"}


async def _work(busy: BusyService, prometheus: Prometheus, *, until: float) -> None:
    """Let bursts come and go, with trouble in some of them, and Redis away once."""
    await prometheus.until('rollcage_pool_sandboxes{environment="swe", state="ready"} > 0')
    await busy.reserved()
    await prometheus.until('rollcage_pool_sandboxes{state="reserved"} > 0')
    halfway, away = (time.time() + until) / 2, False
    while time.time() < until:
        await busy.trouble(prometheus)
        for size in (1, 3, 6):
            await asyncio.gather(*(busy.ordinary() for _ in range(size)))
            await asyncio.sleep(10)  # A step of training, for which rollouts pause.
        if time.time() > halfway and not away:
            away = True
            await busy.without_redis(prometheus)
    await prometheus.scraped()


def main() -> None:
    """Read what is asked for, and do it."""
    parser = argparse.ArgumentParser(prog="scripts/dashboards", description=__doc__)
    parser.add_argument("--pictures", type=Path, required=True, metavar="DIR", help="where to write them")
    parser.add_argument("--minutes", type=float, default=12, help="how long the service works (12)")
    options = parser.parse_args()
    options.pictures.mkdir(parents=True, exist_ok=True)
    # It has every trouble there is, and would tell of each.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        asyncio.run(take(options.pictures, minutes=options.minutes))
    except pytest.skip.Exception as missing:
        sys.exit(f"dashboards: {missing}")


if __name__ == "__main__":
    main()
