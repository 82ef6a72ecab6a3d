"""
Seal a rollout's sandbox: nothing in it changes any more, and its files can still be read.

It can be asked for again at any time, by anybody who may call. What a sandbox
that cannot be sealed means for its rollout is decided by whoever asks.
"""

from datetime import timedelta
from http import HTTPStatus
from typing import Final

import aiohttp

from rollcage.rollouts.errors import SandboxUnreachable
from rollcage.rollouts.routes import Reach
from rollcage.rollouts.transfers import way
from rollcage.wire.messages import ErrorCode, Refusal, Sealed

# A call that somebody still waits for ends by itself; one that takes longer was given up by its trainer.
GRACE: Final = timedelta(seconds=5)

# Beyond the grace: killing takes five seconds where it takes longest, for a call and for what it left behind.
_TO_KILL: Final = 25.0

_TRIES: Final = 3


async def seal(reach: Reach, *, grace: timedelta = GRACE) -> Sealed | None:
    """Seal a sandbox; None if its toolserver is of a release that cannot; raises SandboxUnreachable."""
    for attempt in range(_TRIES):
        try:
            status, body = await _asked(reach, grace)
            break
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # A lost answer is no loss: the next request waits for the same seal.
            if attempt == _TRIES - 1:
                raise SandboxUnreachable("the sandbox does not answer") from error
    try:
        if status == HTTPStatus.OK:
            return Sealed.model_validate_json(body)
        code = Refusal.model_validate_json(body).code
    except ValueError as error:
        raise SandboxUnreachable("the sandbox's answer was none") from error
    if code == ErrorCode.NOT_FOUND:
        return None
    raise SandboxUnreachable(f"the sandbox was not sealed: {code}")


async def _asked(reach: Reach, grace: timedelta) -> tuple[int, bytes]:
    host, connector = way(reach.address)
    times = aiohttp.ClientTimeout(total=grace.total_seconds() + _TO_KILL, connect=5, sock_connect=5)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=times) as session,
        session.post(
            f"{host}/v1/seal",
            params={"wait_ms": int(grace.total_seconds() * 1000)},
            headers=reach.headers,
            skip_auto_headers=("User-Agent", "Accept-Encoding", "Content-Type"),
        ) as response,
    ):
        return response.status, await response.read()
