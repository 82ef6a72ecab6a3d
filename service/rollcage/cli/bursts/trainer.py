"""
Play scripted rollouts over the Agent RFT contract, as a trainer would, and note what was answered.

A 5xx is sent again, up to three times, and then the rollout is given up, as
the platform does. Judging what came of it belongs to ``figures``.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

import httpx

from rollcage.cli.bursts.scripts import ITEM, Call, Means, Script, Timing

RETRIES: Final = 3
# The platform's own pauses are not published; these keep a burst short.
_PAUSE: Final = 0.1
# Trainers give up after ten minutes.
_PATIENCE: Final = httpx.Timeout(600.0, connect=30.0)
_LOOK_AGAIN: Final = 0.05

# Takes a sandbox away, given what the service says about it: name, uid, node.
Striking = Callable[[Mapping[str, str]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call came to, retries included."""

    status: int
    seconds: float
    output: str = ""
    code: str = ""
    """Of a problem, if it was one."""

    @property
    def good(self) -> bool:
        """Whether the model is shown an output."""
        return self.status == HTTPStatus.OK


@dataclass(frozen=True, slots=True)
class Played:
    """One rollout, as its trainer saw it and as the service recorded it."""

    script: Script
    asked_at: float
    ended_at: float
    answers: tuple[Answer, ...]
    """One for each call that was made, in order; a call that was sent twice has two."""
    struck: bool = False
    """Whether its sandbox was really taken away before its last call was answered."""
    sandbox: str = ""
    word: str = ""
    cause: str = ""
    score: float | None = None
    """What the grader gave, if it was asked and gave one."""
    wrong: tuple[str, ...] = ()
    """Outputs that are not what the call should have come to."""

    @property
    def answered_at(self) -> float | None:
        """When the first call was answered, if it was."""
        return self.asked_at + self.answers[0].seconds if self.answers and self.answers[0].good else None


@dataclass(slots=True)
class Trainer:
    """Plays rollouts against one environment of one gateway."""

    http: httpx.AsyncClient
    environment: str
    run: str
    strikes: Mapping[Means, Striking] = field(default_factory=dict)
    begun: int = 0
    over: list[Played] = field(default_factory=list)
    began_at: float = field(default_factory=time.monotonic)

    async def play_all(self, scripts: Sequence[Script]) -> None:
        """Play all of them at once; what came of each is found in *over*."""
        async with asyncio.TaskGroup() as tasks:
            for script in scripts:
                tasks.create_task(self._play(script))

    @property
    def now(self) -> float:
        """Seconds since the burst began."""
        return time.monotonic() - self.began_at

    async def _play(self, script: Script) -> None:
        try:
            await self._played(script)
        except asyncio.CancelledError:
            # Whoever stops a burst wants the sandboxes back, not that they are found idle in half an hour.
            await self._json("DELETE", f"/v1/rollouts/{script.rollout}")
            raise

    async def _played(self, script: Script) -> None:
        self.begun += 1
        asked_at, answers, wrong, struck = self.now, list[Answer](), list[str](), False
        for number, call in enumerate(script.calls):
            last = number == len(script.calls) - 1
            if last and script.strike and answers[-1].good:
                struck = True
                answer = await self._struck(script, number, call)
            else:
                answer = await self._answered(script, number, call)
            again = [await self._answered(script, number, call)] if call.sent_twice and answer.good else []
            answers += [answer, *again]
            if not struck:
                outputs = [one.output for one in (answer, *again) if one.good]
                wrong += [output for output in outputs if not call.is_answered_by(output)]
            if not answers[-1].good:
                break
        score = await self._score(script) if script.answer else None
        record = await self._record(script, finished=answers[-1].good)
        verdict, sandbox = record.get("verdict") or {}, record.get("sandbox") or {}
        self.over.append(
            Played(
                script,
                asked_at,
                self.now,
                tuple(answers),
                struck=struck,
                sandbox=sandbox.get("name", ""),
                word=verdict.get("word", ""),
                cause=verdict.get("cause", ""),
                score=score,
                wrong=tuple(wrong),
            )
        )

    async def _struck(self, script: Script, number: int, call: Call) -> Answer:
        """Make a call whose sandbox is taken away under it, or just before."""
        assert script.strike  # noqa: S101 - asked by the caller
        record = await self._json("GET", f"/v1/rollouts/{script.rollout}")
        striking = self.strikes[script.strike.means](record["sandbox"])
        if script.strike.timing is Timing.BETWEEN:
            await striking
            return await self._answered(script, number, call)
        calling = asyncio.ensure_future(self._answered(script, number, call))
        # A call that was refused will never be seen to run.
        while not calling.done() and await self._steps(script) <= number:  # noqa: ASYNC110 - another process's doing
            await asyncio.sleep(_LOOK_AGAIN)
        await striking
        return await calling

    async def _steps(self, script: Script) -> int:
        trajectory = await self._json("GET", f"/v1/rollouts/{script.rollout}/trajectory")
        return len(trajectory.get("steps", ()))

    async def _answered(self, script: Script, number: int, call: Call) -> Answer:
        body = {
            "type": "function_call",
            "id": f"fc_{number}",
            "call_id": f"call_{number}",
            "name": call.tool,
            "arguments": json.dumps(dict(call.arguments)),
            "trace_id": script.rollout,
        }
        asked_at = self.now
        status, told = await self._insisted("tools", body)
        return Answer(status, self.now - asked_at, told.get("output", ""), told.get("code", ""))

    async def _score(self, script: Script) -> float | None:
        body = {"sample": {"output_text": script.answer}, "item": ITEM, "trace_id": script.rollout}
        _, told = await self._insisted("grade", body)
        score: float | None = told.get("score")
        return score

    async def _insisted(self, task: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        for attempt in range(RETRIES + 1):
            if attempt:
                await asyncio.sleep(_PAUSE * attempt)
            status, told = await self._sent(task, body)
            if status < HTTPStatus.INTERNAL_SERVER_ERROR:
                break
        return status, told

    async def _sent(self, task: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        target = f"/agent-rft/runs/{self.run}/environments/{self.environment}/{task}"
        try:
            answer = await self.http.post(target, json=body, timeout=_PATIENCE)
            return answer.status_code, answer.json()
        except (httpx.TransportError, ValueError) as error:
            return HTTPStatus.BAD_GATEWAY, {"code": type(error).__name__}

    async def _record(self, script: Script, *, finished: bool) -> dict[str, Any]:
        """Return what the service says about the rollout; one that came to its end is finished by that."""
        target = f"/v1/rollouts/{script.rollout}"
        if finished:
            return await self._json("POST", f"{target}/finish")
        return await self._json("GET", target)

    async def _json(self, method: str, target: str) -> dict[str, Any]:
        try:
            answer = await self.http.request(method, target, timeout=_PATIENCE)
            told: dict[str, Any] = answer.json()
        except (httpx.TransportError, ValueError):
            return {}
        return told if answer.is_success else {}
