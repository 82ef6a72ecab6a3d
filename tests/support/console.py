"""
A console in a browser: a gateway over a real store, served in this loop, and a Chromium that looks at it.

Rollouts are written into the store as a gateway and a controller would, at times that the test says.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import async_playwright

from rollcage.console.pages import CONSOLE_PATH, console
from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause, Word
from rollcage.gateway.app import gateway
from rollcage.gateway.serving import server
from rollcage.rollouts.usecases import open_use_cases
from rollcage.store.calls import Call, CallEnding
from rollcage.store.claims import Claim
from rollcage.store.pools import LEVELS_HOLD, Level
from rollcage.store.records import Sandbox, Subject, Verdict
from rollcage.store.store import open_store
from support.environments import environment
from support.gateways import LOCAL, TOKEN, all_is_well, parts
from support.toolserver import SIGNER

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser, Page

    from rollcage.gateway.ports import Parts
    from rollcage.store.settings import Settings
    from rollcage.store.store import Store

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ENVIRONMENTS = {"small": environment(), "swe-django": environment("swe-django", pool={"warm": 40, "maxPods": 200})}
# The tenant that the token of tests belongs to.
OURS = "ours"
# What is written happened lately, so that nothing of it looks old.
LATELY = timedelta(minutes=40)


@dataclass
class Clock:
    """The store's time, in milliseconds; it moves when it is told to."""

    now: int = field(default_factory=lambda: int((time.time() - LATELY.total_seconds()) * 1000))

    def __call__(self) -> int:
        return self.now


@dataclass
class Scene:
    """A gateway's address, and what is written behind it."""

    store: Store
    made: Parts
    url: str
    clock: Clock
    _sandboxes: int = field(default=0)

    async def offer(self, name: str = "small") -> str:
        """Let a sandbox be ready, at an address where nobody is."""
        self._sandboxes += 1
        sandbox = f"sbx-{self._sandboxes}"
        card = Sandbox(sandbox, name, "http://127.0.0.1:9", uid=f"uid-{sandbox}", node="node-1")
        await self.store.as_leader(1).pools.offer(card)
        return sandbox

    @asynccontextmanager
    async def telling(self, **levels: tuple[int, int]) -> AsyncIterator[None]:
        """Say as the controller what is wanted and starting, again and again."""
        told = {name: Level(*pair) for name, pair in levels.items()}

        async def tell() -> None:
            while True:
                await self.store.as_leader(1).pools.tell(told)
                await asyncio.sleep(LEVELS_HOLD.total_seconds() / 3)

        task = asyncio.create_task(tell())
        try:
            yield
        finally:
            task.cancel()

    @asynccontextmanager
    async def waiting(self, name: str) -> AsyncIterator[None]:
        """Let a rollout wait in line, where no sandbox comes."""
        subject = Subject.of(RolloutId(OURS, name), run="run-1", environment="small")
        task = asyncio.create_task(self.store.claims.claim(Claim(subject, wait=timedelta(hours=1), max_waiting=1)))
        try:
            yield
        finally:
            task.cancel()

    async def rollout(
        self, name: str, *, run: str = "run-1", environment: str = "small", tenant: str = OURS
    ) -> WrittenRollout:
        """Let a rollout begin, in a sandbox of its own."""
        await self.offer(environment)
        rollout = RolloutId(tenant, name)
        subject = Subject.of(rollout, run=run, environment=environment)
        await self.store.claims.claim(Claim(subject, wait=timedelta(), max_waiting=1))
        return WrittenRollout(self, rollout, subject)


@dataclass
class WrittenRollout:
    """A rollout that the test writes call by call."""

    scene: Scene
    rollout: RolloutId
    subject: Subject
    calls: int = 0

    async def call(
        self,
        output: str,
        *,
        tool: str = "shell",
        arguments: Any = None,
        outcome: str = "ok",
        lasted: int = 20,
        **facts: Any,
    ) -> None:
        """Let a call run and be recorded."""
        self.calls += 1
        name = f"call_{self.calls:04}"
        asked = {"call_id": name, "tool": tool, "arguments": arguments if arguments is not None else {"command": "ls"}}
        measured = {
            "boot_id": "b1",
            "exit_code": 0,
            "signal": "",
            "timed_out": False,
            "truncated": False,
            "output_bytes": len(output.encode()),
            "duration_ms": lasted - 2,
            "peak_memory_bytes": 7 << 20,
            "oom_kills": 0,
            "pressure": {"source": "psi", "stalled_ms": 0},
            **facts,
        }
        result = {"call_id": name, "tool": tool, "class": outcome, "output": output, "data": {}, "facts": measured}
        digest = hashlib.sha256(json.dumps([tool, asked["arguments"]]).encode()).hexdigest()
        calls = self.scene.store.calls
        await calls.begin(self.rollout.key, Call(name, digest, name, json.dumps(asked).encode()))
        self.scene.clock.now += lasted
        ending = CallEnding(json.dumps(result).encode(), outcome, shown=len(output))
        await calls.finish(self.rollout.key, name, ending)

    async def grade(self, score: float, *, item: str) -> None:
        """Give the score."""
        await self.scene.store.scores.keep(self.rollout.key, score=score, record=b"{}", item=item)

    async def end(
        self, word: Word = Word.TRAINABLE, cause: Cause = Cause.FINISHED, *, by: str = "trainer", **evidence: Any
    ) -> None:
        """Give the verdict."""
        verdict = Verdict(word, by=by, cause=cause, evidence=json.dumps(evidence))
        await self.scene.store.rollouts.end(self.subject, verdict)


@asynccontextmanager
async def scene(settings: Settings) -> AsyncIterator[Scene]:
    """Serve a gateway with its console over an empty store."""
    clock = Clock()
    async with open_store(settings, clock=clock) as store, open_use_cases(store, SIGNER) as use_cases:
        leader = store.as_leader(1)
        await leader.recovery.begin("g1")
        await leader.recovery.complete("g1")
        made = parts(use_cases, records=store.rollouts, pools=store.pools, environments=ENVIRONMENTS)
        app = gateway(made, checks=all_is_well, mounts={CONSOLE_PATH: console()})
        running = server(app, LOCAL, admission=made.admission)
        serving = asyncio.create_task(running.serve())
        try:
            while not running.started:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
            port = running.servers[0].sockets[0].getsockname()[1]
            yield Scene(store, made, f"http://127.0.0.1:{port}", clock)
        finally:
            running.should_exit = True
            await serving


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """Lend the machine's Chromium, or skip the test if it has none."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH")
    async with async_playwright() as playwright:
        # Its own sandbox needs user namespaces, which a container or root may not have; it sees only our page.
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


async def enter(page: Page, scene: Scene, view: str = "", token: str = TOKEN) -> None:
    """Open the console at a view and give the token."""
    await page.goto(f"{scene.url}/console/{view}")
    await page.get_by_label("Token").fill(token)
    await page.get_by_role("button", name="Open").click()
    await page.get_by_role("navigation", name="Views").wait_for()
