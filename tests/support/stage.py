"""
A service without its edges: a real store, toolservers as sandboxes, and gateways that are use cases.

The test plays trainer and controller. Nothing is isolated: harmless commands only.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rollcage.core.ids import RolloutId
from rollcage.core.verdict_facts import SandboxEnded
from rollcage.core.verdicts import judge
from rollcage.rollouts.actions import Action
from rollcage.rollouts.patience import Patience
from rollcage.rollouts.usecases import UseCases, open_use_cases
from rollcage.store.records import Sandbox, Subject, Verdict
from rollcage.store.store import Store, open_store
from support.environments import environment
from support.local_toolserver import Launcher
from support.toolserver import SIGNER
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from rollcage.core.endings import Ending
    from rollcage.core.environment import Environment
    from rollcage.core.verdict_words import Judgement
    from rollcage.rollouts.actions import Answer
    from rollcage.store.link import Clock
    from rollcage.store.settings import Settings
    from support.local_toolserver import LocalToolserver

ENVIRONMENT = "small"
TENANT = "acme"
RUN = "run-1"
# Far more than a call takes, far less than the suite allows.
WITHIN = timedelta(seconds=60)
# Short, so that a test of a loss does not take long; still more than a busy machine makes a process wait.
BRISK = Patience(
    connect=timedelta(seconds=2),
    word=timedelta(seconds=2),
    store=timedelta(seconds=1),
    unheard=timedelta(seconds=1),
    busy=timedelta(seconds=1),
)


@dataclass
class Stage:
    """What a test works with."""

    store: Store
    use_cases: UseCases
    settings: Settings
    binary: Path
    home: Path
    gateways: AsyncExitStack
    processes: ExitStack
    clock: Clock | None = None
    environment: Environment = field(default_factory=lambda: environment(ENVIRONMENT))
    servers: dict[str, LocalToolserver] = field(default_factory=dict)

    def start(self, name: str, *, as_sandbox: str = "", **config: Any) -> LocalToolserver:
        """Start a toolserver with a directory of its own, and wait until it is ready."""
        workdir = self.workdir(name)
        workdir.mkdir(exist_ok=True)
        launcher = Launcher(self.binary, workdir, self.home / f"{name}.log")
        server = self.processes.enter_context(launcher.start(sandbox=as_sandbox or name, **config))
        until(server.ready)
        self.servers[name] = server
        return server

    async def sandbox(self, name: str, **config: Any) -> LocalToolserver:
        """Start a toolserver and offer it to whoever claims."""
        server = self.start(name, **config)
        await self.offer(name, address=address(server))
        return server

    async def offer(self, name: str, *, address: str) -> None:
        card = Sandbox(name=name, environment=ENVIRONMENT, address=address, uid=f"uid-{name}", node="n1")
        await self.store.as_leader(1).pools.offer(card)

    def workdir(self, name: str) -> Path:
        return self.home / name

    def action(self, call: str, command: str | None = None, *, rollout: str = "r1", **changes: Any) -> Action:
        """Return a shell call, or whatever the changes say."""
        fields = {
            "rollout": RolloutId(TENANT, rollout),
            "run": RUN,
            "environment": self.environment,
            "call_id": call,
            "tool": "shell",
            "arguments": {"command": command or "true"},
            "within": WITHIN,
        }
        return Action(**{**fields, **changes})

    async def shell(self, call: str, command: str | None = None, *, rollout: str = "r1", **changes: Any) -> Answer:
        answer = await self.use_cases.act(self.action(call, command, rollout=rollout, **changes))
        # It is counted after it was given, in the loop's next turn.
        await asyncio.sleep(0)
        return answer

    async def gateway(self) -> UseCases:
        """Return the use cases of another gateway, with connections of its own."""
        store = await self.gateways.enter_async_context(open_store(self.settings, clock=self.clock))
        return await self.gateways.enter_async_context(open_use_cases(store, SIGNER, patience=BRISK))

    async def says(self, ending: Ending, *, rollout: str = "r1") -> Judgement:
        """Say as the controller how a rollout's sandbox ended."""
        judgement = judge(SandboxEnded(ending, delivered=True))
        assert judgement.word
        assert judgement.cause
        verdict = Verdict(judgement.word, by="controller", cause=judgement.cause)
        await self.store.rollouts.end(self.subject(rollout), verdict)
        return judgement

    def subject(self, rollout: str = "r1") -> Subject:
        """Return a rollout as the record knows it."""
        return Subject.of(RolloutId(TENANT, rollout), run=RUN, environment=ENVIRONMENT)

    async def verdict(self, rollout: str = "r1") -> tuple[str | None, str | None, str | None]:
        """Return the rollout's verdict, its cause and who gave it."""
        found = await self.use_cases.verdict(RolloutId(TENANT, rollout))
        return found.word, found.cause, found.by

    async def steps(self, rollout: str = "r1") -> list[tuple[str, str | None, str | None]]:
        """Return the record of a rollout's calls: id, outcome, output."""
        page = await self.use_cases.trajectory(RolloutId(TENANT, rollout))
        return [(step.call_id, step.outcome, step.output) for step in page.items]


async def open_stage(
    stack: AsyncExitStack, settings: Settings, *, binary: Path, home: Path, clock: Clock | None = None
) -> Stage:
    """Set the stage: a live store, one gateway, no sandbox."""
    store = await stack.enter_async_context(open_store(settings, clock=clock))
    leader = store.as_leader(1)
    await leader.recovery.begin("g1")
    await leader.recovery.complete("g1")
    processes = stack.enter_context(ExitStack())
    gateways = await stack.enter_async_context(AsyncExitStack())
    use_cases = await gateways.enter_async_context(open_use_cases(store, SIGNER, patience=BRISK))
    return Stage(store, use_cases, settings, binary, home, gateways, processes, clock)


def address(server: LocalToolserver) -> str:
    """Return where a local toolserver is reached."""
    with server.dial() as connection:
        peer = connection.getpeername()
    if isinstance(peer, bytes):
        return f"unix:@{peer[1:].decode()}"
    host, port = peer
    return f"http://{host}:{port}"
