"""
Tell waiting callers to look again.

One subscription per process, made before anybody waits. A message is only a
hint: whoever is woken asks the store, and whoever is not asks after a while.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Final

from redis.asyncio import Redis
from redis.exceptions import RedisError

EVERYBODY: Final = "*"

# Short, because waiters fall back to asking now and then while nobody listens.
_RECONNECT_SECONDS: Final = 0.2

# How long one read may take; only bounds how fast a dead connection, or a lost cancellation, is noticed.
_READ_SECONDS: Final = 1.0


class Wakes:
    """The callers in this process that wait for a message, by what they wait for."""

    def __init__(self) -> None:
        self._waiters: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def waiting(self, name: str) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever *name* should look again."""
        event = asyncio.Event()
        self._waiters.setdefault(name, set()).add(event)
        try:
            yield event
        finally:
            self._waiters[name].discard(event)
            if not self._waiters[name]:
                del self._waiters[name]

    def count(self, name: str) -> int:
        """Return how many callers wait for *name*."""
        return len(self._waiters.get(name, ()))

    def wake(self, name: str) -> None:
        """Set the events of *name*, or of everybody."""
        names = list(self._waiters) if name == EVERYBODY else [name]
        for each in names:
            for event in self._waiters.get(each, ()):
                event.set()

    async def listen(self, client: Redis, channel: str, subscribed: asyncio.Event) -> None:
        """Pass the channel's messages on, for ever."""
        async with aclosing(messages(client, channel)) as heard:
            async for message in heard:
                if message == EVERYBODY:
                    subscribed.set()
                self.wake(message)


async def messages(client: Redis, channel: str) -> AsyncGenerator[str, None]:
    """
    Yield the channel's messages, through lost connections, for ever.

    After each (re)connection comes EVERYBODY, since nobody knows what was missed.
    """
    while True:
        _stop_if_cancelled()
        try:
            async with client.pubsub() as subscription:
                await subscription.subscribe(channel)
                while True:
                    _stop_if_cancelled()
                    message = await subscription.get_message(timeout=_READ_SECONDS)
                    if message and message["type"] == "subscribe":
                        yield EVERYBODY
                    elif message and message["type"] == "message":
                        yield message["data"].decode()
        except (RedisError, OSError):
            await asyncio.sleep(_RECONNECT_SECONDS)


def _stop_if_cancelled() -> None:
    """Raise what redis-py loses when it is cancelled while it connects; without it a reader would never stop."""
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError
