"""
The environments as the leader last read them, for gateways, which never ask the cluster.

Kept whole: a reader has all of them or, from an emptied store, none at all, and
then goes on with what it knew.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

from redis.asyncio import Redis

from rollcage.core.environment import Environment
from rollcage.core.errors import StoreUnavailable
from rollcage.store.link import Link
from rollcage.store.wakes import messages

_KEY: Final = "environments"
_CHANNEL: Final = "recipes"

# Between two tries to read what is said to have changed; the link itself has tried for half a second by then.
_READ_AGAIN_SECONDS: Final = 0.5


class Environments:
    """What anybody may know about the environments."""

    def __init__(self, link: Link, client: Redis) -> None:
        self._link = link
        self._client = client

    async def read(self) -> dict[str, Environment] | None:
        """Return all environments by name, or None while nobody has written them down."""
        document = await self._link.ask("GET", self._link.keys(_KEY))
        if document is None:
            return None
        return {
            name: Environment.model_validate({"name": name, "spec": spec})
            for name, spec in json.loads(document).items()
        }

    async def observe(self) -> AsyncGenerator[dict[str, Environment], None]:
        """Yield all environments, at once if they are known, and whenever they may have changed; for ever."""
        async with aclosing(messages(self._client, self._link.keys(_CHANNEL))) as changes:
            async for _ in changes:
                found = await self._read_once_there()
                if found is not None:
                    yield found

    async def _read_once_there(self) -> dict[str, Environment] | None:
        """Read as soon as the server answers: messages come over a connection of their own, which may be back first."""
        while True:
            try:
                return await self.read()
            except StoreUnavailable:
                await asyncio.sleep(_READ_AGAIN_SECONDS)


class LeadersEnvironments:
    """What the leader writes down."""

    def __init__(self, link: Link, *, epoch: int) -> None:
        self._link = link
        self._epoch = epoch

    async def publish(self, environments: Mapping[str, Environment]) -> None:
        """Write down all environments there are."""
        document = {
            name: one.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
            for name, one in sorted(environments.items())
        }
        await self._link.run("publish", leader=self._epoch, document=json.dumps(document))
