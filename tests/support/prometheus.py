"""
The real promtool and Prometheus, built once per machine; without Go, tests that want them are skipped.
"""

from __future__ import annotations

import asyncio
import functools
import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import yaml

from lab import prometheus
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

# It scrapes every second; a busy machine may take some more.
PATIENCE = 60.0
POLL = 0.2


@functools.cache
def programs() -> Path:
    """Return where both programs are; the first time on a machine this takes some minutes."""
    if not shutil.which("go"):
        pytest.skip("no go here to build Prometheus with")
    return prometheus.programs()


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run promtool and return what came of it."""
    return subprocess.run([programs() / "promtool", *arguments], capture_output=True, text=True, check=False)


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus that scrapes every second, with the chart's rules."""

    url: str

    async def ask(self, expr: str, *, at: float | None = None) -> list[Any]:
        """Return what it answers to a question now, or would have answered at another time."""
        return list((await self._get("/api/v1/query", query=expr, time=at or time.time()))["result"])

    async def history(self, expr: str, *, seconds: float) -> list[Any]:
        """Return what it would have answered in every second of the last while."""
        now = time.time()
        return await self.between(expr, begin=now - seconds, end=now, step=1)

    async def between(self, expr: str, *, begin: float, end: float, step: float) -> list[Any]:
        """Return what it would have answered at each step."""
        asked = {"query": expr, "start": begin, "end": end, "step": step}
        return list((await self._get("/api/v1/query_range", **asked))["result"])

    async def until(self, expr: str) -> None:
        """Wait until a question has an answer."""
        async with asyncio.timeout(PATIENCE):
            while not await self.ask(expr):  # noqa: ASYNC110 - it tells nobody when it has scraped
                await asyncio.sleep(POLL)

    async def scraped(self) -> None:
        """Wait until everything that has happened by now can be asked for."""
        await self.until(f"timestamp(rollcage_store_up) > {time.time()}")

    async def rules(self) -> list[Any]:
        """Return all rules, each with what came of its last evaluation."""
        return [rule for group in (await self._get("/api/v1/rules"))["groups"] for rule in group["rules"]]

    async def _get(self, path: str, **parameters: Any) -> Any:
        async with httpx.AsyncClient(base_url=self.url, trust_env=False) as client:
            answer = (await client.get(path, params=parameters)).json()
        assert answer["status"] == "success", answer
        return answer["data"]


def scraping(target: str, *, rules: list[Path], home: Path) -> AbstractContextManager[Prometheus]:
    """Lend a Prometheus that scrapes the service at ``host:port``."""
    return scraping_all([{"targets": [target]}], rules=rules, home=home)


@contextmanager
def scraping_all(targets: list[dict[str, Any]], *, rules: list[Path], home: Path) -> Iterator[Prometheus]:
    """Lend a Prometheus that scrapes these, each with labels of its own."""
    config = home / "prometheus.yaml"
    log = home / "prometheus.log"
    config.write_text(
        yaml.safe_dump(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(file) for file in rules],
                "scrape_configs": [{"job_name": "rollcage", "static_configs": targets}],
            }
        )
    )
    command = [
        str(programs() / "prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={home / 'data'}",
        "--web.listen-address=127.0.0.1:0",
        "--log.format=json",
    ]
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            until(lambda: _address(log) != "", seconds=PATIENCE)
            url = f"http://{_address(log)}"
            # It listens before it serves, and refuses meanwhile.
            until(lambda: httpx.get(f"{url}/-/ready", trust_env=False).is_success, seconds=PATIENCE)
            yield Prometheus(url)
        finally:
            process.terminate()


def _address(log: Path) -> str:
    found = re.search(r'"Listening on".*"address":"([^"]+)"', log.read_text())
    return found[1] if found else ""
