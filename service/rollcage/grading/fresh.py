"""
Fresh sandboxes for graders: claimed like a rollout's own, given the artifacts, used for one command, given back.

What the command does to its sandbox is the artifacts' doing and part of what
came of it; what the infrastructure breaks is raised.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

import aiohttp

from rollcage.core.environment import Environment
from rollcage.core.ids import RolloutId
from rollcage.grading.errors import GradingSandboxFailed
from rollcage.grading.frames import Frame
from rollcage.rollouts.actions import Action, Answer, Outcome
from rollcage.rollouts.errors import FileRefused, SandboxUnreachable
from rollcage.rollouts.routes import Reach
from rollcage.rollouts.transfers import Transfer, begun, pieces
from rollcage.store.rollouts import Settled

# Sandboxes of graders count into no run's health but their own.
RUN: Final = "grading"
_MOST_COLLECTED: Final = 32 << 20


class TooMuch(Exception):
    """More than may be fetched."""


class UseCases(Protocol):
    """What is needed of rollouts."""

    async def act(self, action: Action) -> Answer: ...  # noqa: D102
    async def reach(self, rollout: RolloutId) -> Reach: ...  # noqa: D102
    async def finish(self, rollout: RolloutId, *, run: str, environment: str) -> Settled: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class FreshSandboxes:
    """Fresh sandboxes for the grading of one rollout."""

    use_cases: UseCases
    environments: Mapping[str, Environment]
    tenant: str
    own: Environment
    within: timedelta

    async def answer(self, asked: Frame) -> Frame:
        """Do what a worker asks for; raises RollcageError for whatever the infrastructure did."""
        name = asked.fields.get("environment") or self.own.name
        environment = self.own if name == self.own.name else self.environments.get(name)
        if environment is None:
            raise GradingSandboxFailed(cause=f"environment {name} is not known here")
        rollout = RolloutId(self.tenant, f"grading-{secrets.token_hex(16)}")
        try:
            return await self._used(rollout, environment, asked)
        finally:
            # Also when the grader was ended meanwhile: its sandbox must not wait for the idle time.
            await asyncio.shield(self.use_cases.finish(rollout, run=RUN, environment=environment.name))

    async def _used(self, rollout: RolloutId, environment: Environment, asked: Frame) -> Frame:
        # Before its first call a rollout may still be moved to another sandbox, and what was written is lost.
        first = await self._act(rollout, environment, "claim", "true", seconds=60)
        if first.outcome is not Outcome.OK:
            raise GradingSandboxFailed(cause=f"{environment.name} runs no command: {first.output[:200]}")
        try:
            for path, archive in asked.parts("archives").items():
                await send(await self.use_cases.reach(rollout), "/v1/tree", path, archive)
            for path, content in asked.parts("files").items():
                await send(await self.use_cases.reach(rollout), "/v1/files", path, content)
        except FileRefused as refusal:
            # What was taken out cannot be laid over a fresh sandbox: a file where a directory must be, for example.
            return _told(output=f"the artifacts do not fit: {refusal}", exit_code=None)
        seconds = min(int(asked.fields["timeout_seconds"]), environment.spec.limits.max_timeout_seconds)
        answer = await self._act(rollout, environment, "command", str(asked.fields["command"]), seconds=seconds)
        if answer.ended:
            return _told(output=answer.output, exit_code=None, ended=True)
        if answer.outcome in {Outcome.REFUSED, Outcome.MALFORMED}:
            raise GradingSandboxFailed(cause=f"the command was not taken: {answer.output[:200]}")
        return await self._collected(rollout, asked, answer)

    async def _act(
        self, rollout: RolloutId, environment: Environment, call: str, command: str, *, seconds: int
    ) -> Answer:
        action = Action(
            rollout=rollout,
            run=RUN,
            environment=environment,
            call_id=call,
            tool="shell",
            arguments={"command": command, "timeout_ms": seconds * 1000},
            within=self.within,
        )
        return await self.use_cases.act(action)

    async def _collected(self, rollout: RolloutId, asked: Frame, answer: Answer) -> Frame:
        found: dict[str, dict[str, bytes]] = {"files": {}, "trees": {}}
        for group, target, key in (("files", "/v1/files", "collect"), ("trees", "/v1/tree", "collect_trees")):
            for path in asked.fields.get(key, ()):
                try:
                    reach = await self.use_cases.reach(rollout)
                    found[group][path] = await fetch(reach, target, path, most=_MOST_COLLECTED)
                except (FileRefused, TooMuch):
                    continue
        exit_code = answer.facts.get("exit_code")
        timed_out = answer.outcome is Outcome.TIMED_OUT
        return Frame.of(_fields(output=answer.output, exit_code=exit_code, timed_out=timed_out), **found)


async def send(reach: Reach, target: str, path: str, content: bytes) -> None:
    """Write a file or a tree; raises FileRefused, SandboxUnreachable."""

    async def body() -> AsyncIterator[bytes]:
        yield content

    async with AsyncExitStack() as stack:
        await begun(stack, reach, Transfer("PUT", target, path, body(), str(len(content))))


async def fetch(reach: Reach, target: str, path: str, *, most: int) -> bytes:
    """Read a file or a tree; raises FileRefused, SandboxUnreachable, TooMuch."""
    content = bytearray()
    async with AsyncExitStack() as stack:
        response = await begun(stack, reach, Transfer("GET", target, path))
        try:
            async for piece in pieces(response):
                content += piece
                if len(content) > most:
                    raise TooMuch
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise SandboxUnreachable("the transfer broke off") from error
    return bytes(content)


def _told(**fields: Any) -> Frame:
    return Frame(_fields(**fields))


def _fields(*, output: str, exit_code: int | None, timed_out: bool = False, ended: bool = False) -> dict[str, Any]:
    return {"output": output, "exit_code": exit_code, "timed_out": timed_out, "ended": ended}
