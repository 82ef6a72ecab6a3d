"""
Use cases in a process of their own, to be killed: makes one call, then many at once, and never ends by itself.

Once the first is answered, the sandbox is known, and the others are sent before they are marked.

Usage: python -m support.doomed_use_cases REDIS_URL ROLLOUT CALLS
"""

from __future__ import annotations

import asyncio
import sys

from rollcage.core.ids import RolloutId
from rollcage.rollouts.actions import Action
from rollcage.rollouts.usecases import open_use_cases
from rollcage.store.settings import Settings
from rollcage.store.store import open_store
from support.environments import environment
from support.stage import BRISK, ENVIRONMENT, RUN, TENANT, WITHIN
from support.toolserver import SIGNER


def effect(number: int) -> str:
    """Return the command of a call: it leaves a line, and takes long enough to be met in the middle."""
    return f"echo {number} >> effects; sleep 0.0{number % 5}; date +%N"


async def serve(url: str, rollout: str, calls: int) -> None:
    async with open_store(Settings(url)) as store, open_use_cases(store, SIGNER, patience=BRISK) as use_cases:
        actions = [
            Action(
                RolloutId(TENANT, rollout),
                RUN,
                environment(ENVIRONMENT),
                f"c{number}",
                "shell",
                {"command": effect(number)},
                WITHIN,
            )
            for number in range(calls)
        ]
        await use_cases.act(actions[0])
        sys.stdout.write("serving\n")
        sys.stdout.flush()
        await asyncio.gather(*(use_cases.act(action) for action in actions[1:]), return_exceptions=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3])))
