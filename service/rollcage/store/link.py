"""
Talk to Redis: the one place where its library is called.

Runs scripts by name, sends what is asked at the same time in one round trip,
and translates the library's errors and the scripts' refusals. What scripts do
is theirs; what answers mean is for the callers.

Every script may be run twice with the same effect as once, so a lost answer is
simply asked for again.
"""

import asyncio
import re
from asyncio import Future, TaskGroup
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import ClusterDownError, NoScriptError, OutOfMemoryError, ReadOnlyError, ResponseError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

from rollcage.core.errors import RollcageError, StoreUnavailable
from rollcage.store.keys import Keys
from rollcage.store.refusals import refusal
from rollcage.store.scripts import load
from rollcage.store.settings import Settings

Value: TypeAlias = str | int | bytes
Clock: TypeAlias = Callable[[], int]

# Enough to share a round trip, few enough that nobody waits long for the others.
_BATCH: Final = 128

# Covers a restart of the server's process or a dropped connection, not an outage.
_RETRIES: Final = 3

# Nobody answered, or the server is there and cannot serve: full, read-only after a failover, and so on.
# The library has a class for some of the server's codes; the others, and those that old servers
# wrap in a script's error, stand in the text.
_UNAVAILABLE: Final = (NoConnection, NoAnswer, OSError, OutOfMemoryError, ReadOnlyError, ClusterDownError)
_UNAVAILABLE_CODES: Final = re.compile(r"\b(OOM|READONLY|MISCONF|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|BUSY)\b")


@dataclass(frozen=True, slots=True)
class Step:
    """One script to run, with its arguments by name."""

    script: str
    fields: dict[str, Value]


@dataclass(slots=True)
class _Order:
    """A command on its way, and who waits for its answer."""

    command: tuple[Value, ...]
    # What to send instead if the server has forgotten the script.
    whole: tuple[Value, ...]
    answer: Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


def connect(settings: Settings) -> Redis:
    """Return a client that reconnects by itself; nothing is sent yet."""
    # Only a network connection can go silent; the library refuses the option for a local socket.
    options = {"socket_keepalive": True} if settings.url.startswith("redis") else {}
    client: Redis = Redis.from_url(
        settings.url,
        socket_timeout=settings.timeout.total_seconds(),
        socket_connect_timeout=settings.timeout.total_seconds(),
        health_check_interval=15,
        retry=Retry(ExponentialWithJitterBackoff(cap=0.5, base=0.02), _RETRIES),
        **options,
    )
    return client


class Link:
    """
    A gateway's or controller's way to Redis.

    Orders given while a batch is on its way go together in the next one, in
    the order in which they were given.
    """

    def __init__(self, client: Redis, *, settings: Settings, tasks: TaskGroup, clock: Clock | None = None) -> None:
        self.keys = Keys(settings.namespace)
        self._tasks = tasks
        self._client = client
        self._clock = clock
        self._retention = int(settings.retention.total_seconds() * 1000)
        self._scripts = load()
        self._waiting: list[_Order] = []
        self._busy = False

    async def teach(self) -> None:
        """
        Let the server learn all scripts, so that it finds none missing later.

        One that it forgot is sent again, but then runs after those sent along with it.
        """
        await asyncio.gather(*(self.ask("SCRIPT", "LOAD", script.text) for script in self._scripts.values()))

    async def run(self, script: str, **fields: Value) -> list[Any]:
        """Run one script and return its answer, or raise its refusal."""
        (answer,) = await self.together(Step(script, fields))
        if isinstance(answer, RollcageError):
            raise answer
        return answer

    async def together(self, *steps: Step) -> list[list[Any] | RollcageError]:
        """Run scripts one after the other in one round trip; refusals are among the answers."""
        orders = [self._order(step) for step in steps]
        self._submit(orders)
        answers = await asyncio.gather(*(order.answer for order in orders))
        return [refusal(answer) or answer for answer in answers]

    def post(self, script: str, **fields: Value) -> None:
        """Run one script, after all that was asked before, without waiting for its answer."""
        order = self._order(Step(script, fields))
        order.answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        self._submit([order])

    async def ask(self, *command: Value) -> Any:
        """Run one plain command that changes nothing, and return its answer."""
        order = _Order(command, command)
        self._submit([order])
        return await order.answer

    def _order(self, step: Step) -> _Order:
        script = self._scripts[step.script]
        fields: dict[str, Value] = {"retention": self._retention, **step.fields}
        if self._clock:
            fields["now"] = self._clock()
        rest = (1, self.keys("state"), *(part for pair in fields.items() for part in pair))
        return _Order(("EVALSHA", script.sha, *rest), ("EVAL", script.text, *rest))

    def _submit(self, orders: list[_Order]) -> None:
        self._waiting.extend(orders)
        if not self._busy:
            self._busy = True
            self._tasks.create_task(self._drain())

    async def _drain(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                await self._deliver(batch)
        finally:
            self._busy = False
            for order in self._waiting:
                order.answer.cancel()

    async def _deliver(self, batch: list[_Order]) -> None:
        try:
            answers = await self._send([order.command for order in batch])
            forgotten = [i for i, answer in enumerate(answers) if isinstance(answer, NoScriptError)]
            if forgotten:
                again = await self._send([batch[i].whole for i in forgotten])
                for i, answer in zip(forgotten, again, strict=True):
                    answers[i] = answer
        except BaseException as error:
            for order in batch:
                _fail(order, _translated(error))
            # Anything else was told to whoever asked; this task goes on for the others.
            if not isinstance(error, Exception):
                raise
            return
        for order, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Exception):
                _fail(order, _translated(answer))
            elif not order.answer.done():
                order.answer.set_result(answer)

    async def _send(self, commands: list[tuple[Value, ...]]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            answers: list[Any] = await pipe.execute(raise_on_error=False)
            return answers


def _fail(order: _Order, error: BaseException) -> None:
    if order.answer.done():
        return
    if isinstance(error, asyncio.CancelledError):
        order.answer.cancel()
    else:
        order.answer.set_exception(error)


def _translated(error: BaseException) -> BaseException:
    told = isinstance(error, ResponseError) and _UNAVAILABLE_CODES.search(str(error))
    if told or isinstance(error, _UNAVAILABLE):
        translated = StoreUnavailable(f"Redis does not serve: {error}")
        translated.__cause__ = error
        return translated
    return error
