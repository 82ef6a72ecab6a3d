"""
Whatever happens to gateways and lines, no call runs twice, and every answer to a call is the same to the byte.

Effects are counted where they happen: each call appends a line to a file in its sandbox.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollcage.core.errors import RollcageError
from rollcage.rollouts.errors import Masked
from support.doomed_use_cases import effect
from support.frail_line import frail_line
from support.stage import address

if TYPE_CHECKING:
    from rollcage.rollouts.actions import Answer
    from rollcage.rollouts.usecases import UseCases
    from support.frail_line import FrailLine
    from support.stage import Stage

CALLS = 10
ATTEMPTS = 4


@pytest.mark.parametrize("seed", range(12))
async def test_callers_that_vanish_and_lines_that_break_never_run_a_call_twice(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets
    gateways = [stage.use_cases, await stage.gateway(), await stage.gateway()]
    async with frail_line(stage) as line:
        trouble = asyncio.create_task(_break_now_and_then(line, dice))
        answers = await asyncio.gather(*(_retried(stage, gateways, number, dice) for number in range(CALLS)))
        trouble.cancel()
        await asyncio.wait([trouble])

    _check(stage, dict(enumerate(answers)))


@pytest.mark.parametrize("seed", range(6))
async def test_gateways_that_are_killed_never_run_a_call_twice(stage: Stage, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - dice, not secrets
    # Not over loopback, from where a sandbox takes eight connections at most.
    await stage.offer("sbx-1", address=address(stage.start("sbx-1", unix=True)))
    for _ in range(2):
        gateway = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "support.doomed_use_cases", stage.settings.url, "r1", str(CALLS)),
            cwd=Path(__file__).parents[2],
            env={"PYTHONPATH": ":".join(filter(None, sys.path))},
            stdout=asyncio.subprocess.PIPE,
        )
        assert gateway.stdout
        assert await gateway.stdout.readline() == b"serving\n"
        # A moment somewhere among the calls: some are not begun, some run, some are over.
        await asyncio.wait([asyncio.create_task(gateway.wait())], timeout=dice.uniform(0.0, 0.15))
        gateway.kill()
        await gateway.communicate()

    answers = await asyncio.gather(*(_finally(stage, number) for number in range(CALLS)))

    _check(stage, {number: [answer] for number, answer in enumerate(answers) if answer})


async def _retried(stage: Stage, gateways: list[UseCases], number: int, dice: random.Random) -> list[Answer]:
    """Make a call as a trainer does whose patience ends at random; return every answer that it got."""
    answers = []
    for attempt in range(ATTEMPTS):
        call = asyncio.create_task(dice.choice(gateways).act(stage.action(f"c{number}", effect(number))))
        if attempt < ATTEMPTS - 1:
            await asyncio.wait([call], timeout=dice.uniform(0.0, 0.2))
            call.cancel()
        try:
            answers.append(await call)
        except (RollcageError, asyncio.CancelledError):
            continue
    return answers


async def _finally(stage: Stage, number: int) -> Answer | None:
    try:
        return await stage.shell(f"c{number}", effect(number))
    except Masked:
        return None


async def _break_now_and_then(line: FrailLine, dice: random.Random) -> None:
    while True:
        await asyncio.sleep(dice.uniform(0.02, 0.2))
        await line.cut()
        await asyncio.sleep(dice.uniform(0.0, 0.1))
        line.mend()


def _check(stage: Stage, answers: dict[int, list[Answer]]) -> None:
    ran = Counter(int(line) for line in _effects(stage))
    assert max(ran.values(), default=0) <= 1
    for number, got in answers.items():
        assert len({answer.result for answer in got}) <= 1
        assert ran[number] == 1 or not got


def _effects(stage: Stage) -> list[str]:
    file = stage.workdir("sbx-1") / "effects"
    return file.read_text().split() if file.exists() else []
