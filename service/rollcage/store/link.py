"""
Talk to Redis: the one place where its library is called.

Runs scripts by name, sends what is asked at the same time in one round trip,
and translates the library's errors and the scripts' refusals. What scripts do
is theirs; what answers mean is for the callers.

Every script may be run twice with the same effect as once, so a lost answer is
simply asked for again.
"""

import asyncio
import math
import random
import re
from asyncio import Future, TaskGroup
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from rollcage.core.errors import RollcageError, StoreUnavailable
from rollcage.store.keys import Keys
from rollcage.store.pipe import Command, Pipe, lengthened, open_pipe, packed
from rollcage.store.refusals import granted, refusal
from rollcage.store.scripts import Script, load
from rollcage.store.settings import Settings
from rollcage.store.watch import Watch

Value: TypeAlias = str | int | bytes
T = TypeVar("T")
Clock: TypeAlias = Callable[[], int]

# Seconds before each new try: covers a restart of the server's process or a dropped connection, not an outage.
_PAUSES: Final = (0.02, 0.1, 0.4)

# Names are looked up, a connection is made, and the server is told who comes; each may take as long as an answer.
_TIMES_TO_CONNECT: Final = 3

# Nobody answered. (asyncio's own TimeoutError is an OSError.)
_LOST: Final = (NoConnection, NoAnswer, OSError)

# The server is there and cannot serve: full, read-only after a failover, and so on. Old servers wrap
# these codes in a script's error.
_UNAVAILABLE_CODES: Final = re.compile(
    r"\b(OOM|READONLY|MISCONF|MASTERDOWN|CLUSTERDOWN|NOREPLICAS|BUSY|LOADING|TRYAGAIN)\b"
)


@dataclass(frozen=True, slots=True)
class Step:
    """One script to run, with its arguments by name."""

    script: str
    fields: dict[str, Value]


@dataclass(slots=True)
class _Order:
    """A command on its way, and who waits for its answer."""

    packed: bytes
    # The script and what it is given, to be sent instead if the server has forgotten it; None once it is, or was none.
    script: tuple[Script, list[Value]] | None
    again: Callable[[Sequence["_Order"]], None]
    answer: Future[Any]
    tries: int = 0
    ahead: int = 0

    def add(self, more: tuple[Value, ...]) -> None:
        """Give the script more, before it is sent."""
        self.packed = lengthened(self.packed, more)
        if self.script:
            self.script[1].extend(more)

    def answered(self, answer: Any) -> None:
        """Pass the answer on to whoever waits."""
        if self.answer.done():
            return
        if not isinstance(answer, ResponseError):
            self.answer.set_result(answer)
        elif self.script and str(answer).startswith("NOSCRIPT"):
            script, given = self.script
            self.packed, self.script = packed(("EVAL", script.text, *given)), None
            self.again([self])
        else:
            self.answer.set_exception(_translated(answer))

    def failed(self, error: BaseException) -> None:
        """Tell whoever waits that there will be no answer."""
        if not self.answer.done():
            self.answer.set_exception(error)

    def lost(self, *, closed: bool) -> bool:
        """Hear that a connection did not answer it; return whether to send it again."""
        self.tries += 1
        if closed:
            self.answer.cancel()
        elif self.tries > len(_PAUSES):
            self.failed(_translated(NoAnswer("no answer")))
        else:
            return True
        return False


@dataclass(frozen=True, slots=True)
class Draft:
    """A script to run once the rest of its arguments is known; all that can be done before is done."""

    _order: _Order
    _send: Callable[[_Order], Future[list[Any]]]

    def send(self, *more: Value) -> Future[list[Any]]:
        """
        Run it, with *more* as the script takes it, by its place.

        Its answer, refusals among them, is to be looked at, unless it is ``unattended``.
        """
        if more:
            self._order.add(more)
        return self._send(self._order)


def connect(settings: Settings) -> Redis:
    """Return a client that reconnects by itself; nothing is sent yet."""
    # Only a network connection can go silent; the library refuses the option for a local socket.
    options: dict[str, Any] = {"socket_keepalive": True} if settings.url.startswith("redis") else {}
    if settings.ca:
        options["ssl_ca_certs"] = str(settings.ca)
    client: Redis = Redis.from_url(
        settings.url,
        socket_timeout=settings.timeout.total_seconds(),
        socket_connect_timeout=settings.timeout.total_seconds(),
        health_check_interval=15,
        retry=Retry(ExponentialWithJitterBackoff(cap=0.5, base=0.02), len(_PAUSES)),
        **options,
    )
    return client


class Link:
    """
    A gateway's or controller's way to Redis.

    Orders are sent in the order in which they were given: at once while nothing
    else is under way, otherwise those of one moment in one piece. After a lost
    connection all that were not answered are sent again, still in that order.
    """

    def __init__(self, client: Redis, *, settings: Settings, tasks: TaskGroup, clock: Clock | None = None) -> None:
        self.keys = Keys(settings.namespace)
        # Kept: before Python 3.12 asking for the running one asks the kernel which process this is.
        self.loop = asyncio.get_running_loop()
        self._tasks = tasks
        self._client = client
        self._clock = clock
        self.retention = int(settings.retention.total_seconds() * 1000)
        self._seconds = settings.timeout.total_seconds()
        self._encrypted = settings.url.startswith("rediss://")
        self._scripts = load()
        self._state_key = self.keys("state")
        self._pipe: Pipe | None = None
        self._waiting: list[_Order] = []
        # Somebody will send what waits: at the end of this moment, or once there is a connection.
        self._attended = False
        self._closed = False
        self._connecting: asyncio.Task[None] | None = None
        self._watch: Watch | None = None

    def close(self) -> None:
        """Close the connection; whoever waits is cancelled, whoever comes later is refused."""
        self._closed = True
        if self._connecting:
            self._connecting.cancel()
        if self._pipe:
            self._pipe.close()
        for order in self._waiting:
            order.answer.cancel()

    async def teach(self) -> None:
        """
        Let the server learn all scripts, so that it finds none missing later.

        One that it forgot is sent again, but then runs after those sent along with it.
        """
        await asyncio.gather(*(self.ask("SCRIPT", "LOAD", script.text) for script in self._scripts.values()))

    async def run_within(self, seconds: float, script: str, **fields: Value) -> list[Any]:
        """Run one script and return its answer; raise its refusal, or TimeoutError."""
        return granted(await within(seconds, self.begin(script, **fields)))

    async def run(self, script: str, **fields: Value) -> list[Any]:
        """Run one script and return its answer, or raise its refusal."""
        order = self._order(script, fields)
        self._submit([order])
        return granted(await order.answer)

    def begin(self, script: str, **fields: Value) -> Future[list[Any]]:
        """Run one script; its answer, refusals among them, can be waited for, or not."""
        return unattended(self.draft(script, **fields).send())

    def draft(self, script: str, **fields: Value) -> Draft:
        """Get ready to run one script."""
        return Draft(self._order(script, fields), self._sent)

    def _sent(self, order: _Order) -> Future[list[Any]]:
        self._submit([order])
        return order.answer

    async def together(self, *steps: Step) -> list[list[Any] | RollcageError]:
        """Run scripts one after the other in one round trip; refusals are among the answers."""
        orders = [self._order(step.script, step.fields) for step in steps]
        self._submit(orders)
        answers = await asyncio.gather(*(order.answer for order in orders))
        return [refusal(answer) or answer for answer in answers]

    def post(self, script: str, **fields: Value) -> None:
        """Run one script, after all that was asked before, without waiting for its answer."""
        self.begin(script, **fields)

    def watch(self, key: str, *look: Command, seen: Callable[[list[Any]], None]) -> Watch | None:
        """Look at something, which is told to *seen*, and watch *key* from then on; None if others are under way."""
        if self._watch or self._attended or self._closed or not (self._pipe and self._pipe.idle):
            return None
        self._watch = Watch(self._pipe, key, look, seen=seen, over=self._unwatched)
        return self._watch

    def milliseconds(self, time: Sequence[bytes]) -> int:
        """Return the time that scripts would see, of what the server has answered to TIME."""
        return self._clock() if self._clock else int(time[0]) * 1000 + int(time[1]) // 1000

    def _unwatched(self) -> None:
        self._watch = None

    async def ask(self, *command: Value) -> Any:
        """Run one plain command that changes nothing, and return its answer."""
        order = _Order(packed(command), None, self._submit, self.loop.create_future())
        self._submit([order])
        return await order.answer

    async def certificate_expires(self) -> float:
        """
        Return when the server's certificate does, in seconds since 1970; 0 if it shows none.

        Looked at over a connection of its own: the one in use goes on with what was shown when it was opened.
        """
        if not self._encrypted:
            return 0.0
        try:
            pipe = await self._open()
        except (*_LOST, RedisError) as error:
            raise StoreUnavailable(f"Redis does not serve: {error}") from error
        try:
            return pipe.certificate_expires
        finally:
            pipe.close()

    def _order(self, script: str, fields: Mapping[str, Value]) -> _Order:
        found = self._scripts[script]
        always: dict[str, Value] = {"retention": self.retention, "now": self._clock() if self._clock else b""}
        given: list[Value] = [1, self._state_key, *found.words({**always, **fields})]
        return _Order(packed(("EVALSHA", found.sha, *given)), (found, given), self._submit, self.loop.create_future())

    def _submit(self, orders: Sequence[_Order]) -> None:
        if self._closed:
            for order in orders:
                order.failed(StoreUnavailable("the store is closed"))
            return
        if self._pipe and self._pipe.idle and not self._attended:
            # Nobody to wait for, or to go along with.
            self._pipe.send(orders)
            return
        self._waiting.extend(orders)
        if not self._attended:
            self._attended = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Send what waits, or have somebody connect first."""
        self._attended = False
        if not self._waiting or self._closed:
            return
        if self._pipe and self._pipe.usable:
            orders, self._waiting = self._waiting, []
            self._pipe.send(orders)
        else:
            self._attended = True
            self._connecting = self._tasks.create_task(self._connect())

    async def _connect(self) -> None:
        error: BaseException | None = NoConnection("nobody connects any more")
        try:
            error = await self._opened()
        finally:
            # However that ended: who waits is served or told, and who comes next is attended to.
            self._attended = False
            if error is None:
                self._flush()
            else:
                orders, self._waiting = self._waiting, []
                for order in orders:
                    order.failed(_translated(error))

    async def _opened(self) -> BaseException | None:
        """Open a connection, or return why there is none."""
        error: BaseException = NoConnection("closed")
        for pause in (*_PAUSES, 0.0):
            try:
                self._pipe = await self._open()
            except _LOST as refused:
                error = refused
                # Spread, so that not all gateways come back in the same moment.
                await asyncio.sleep(pause * (0.5 + random.random()))  # noqa: S311 - no secret
            except RedisError as refused:
                return refused
            else:
                if self._closed:
                    self._pipe.close()
                return None
        return error

    async def _open(self) -> Pipe:
        """Open a connection within the time for it, which the library may forget, as it may lose a cancellation."""
        opening = asyncio.ensure_future(open_pipe(self._client, seconds=self._seconds, lost=self._again))
        try:
            await asyncio.wait({opening}, timeout=_TIMES_TO_CONNECT * self._seconds)
        finally:
            if not opening.done():
                opening.add_done_callback(_close_late)
                opening.cancel()
        if not opening.done():
            raise NoAnswer("no connection in time")
        return opening.result()

    def _again(self, orders: Sequence[Any]) -> None:
        """Take back what a lost connection did not answer, ahead of what came later."""
        self._waiting[:0] = [order for order in orders if order.lost(closed=self._closed)]
        if not self._attended and not self._closed:
            self._attended = True
            self.loop.call_soon(self._flush)


async def within(seconds: float, answer: Future[T]) -> T:
    """Wait for an answer so long, else raise TimeoutError; quicker than a timeout of the whole task."""
    if seconds == math.inf:
        return await answer
    if not answer.done():
        late = answer.get_loop().call_later(seconds, _give_up, answer)
        try:
            return await answer
        finally:
            late.cancel()
    return answer.result()


def told(seconds: float, answer: Future[list[Any]], then: Callable[[Future[list[Any]]], None]) -> None:
    """Have *then* told once there is an answer, after so long a TimeoutError."""
    late = answer.get_loop().call_later(seconds, _give_up, answer)

    def done(answer: Future[list[Any]]) -> None:
        then(answer)
        late.cancel()

    answer.add_done_callback(done)


def _give_up(answer: Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())


def unattended(answer: Future[list[Any]]) -> Future[list[Any]]:
    """Keep the loop from complaining of an error in *answer* that nobody looks at."""
    answer.add_done_callback(_looked_at)
    return answer


def _looked_at(answer: Future[Any]) -> None:
    if not answer.cancelled():
        answer.exception()


def _close_late(opening: Future[Pipe]) -> None:
    """Close a connection that nobody waits for any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


def _translated(error: BaseException) -> BaseException:
    told = isinstance(error, ResponseError) and _UNAVAILABLE_CODES.search(str(error))
    if told or isinstance(error, _LOST):
        translated = StoreUnavailable(f"Redis does not serve: {error}")
        translated.__cause__ = error
        return translated
    return error
