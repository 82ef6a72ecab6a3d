"""Commands as the server reads them, and its answers as they come."""

from __future__ import annotations

from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from redis.exceptions import ResponseError

from rollcage.store.pipe import Pipe, lengthened, packed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


def test_words_can_be_added_to_a_packed_command() -> None:
    words = ("EVALSHA", "ab", 1, "key", b"\r\n*9\r\n", "é")

    for first in range(1, len(words)):
        assert lengthened(packed(words[:first]), words[first:]) == packed(words)


class Transport:
    """Takes everything, and is never closed."""

    def set_protocol(self, protocol: Any) -> None: ...

    def write(self, data: bytes) -> None: ...

    def abort(self) -> None: ...

    def is_closing(self) -> bool:
        return False


class Order:
    """Something that is sent, and the answer to it."""

    packed = b""

    def __init__(self, *, ahead: int = 0) -> None:
        self.ahead = ahead
        self.answers: list[Any] = []

    def answered(self, answer: Any) -> None:
        self.answers.append(answer)

    def lost(self, *, closed: bool) -> bool:
        raise AssertionError(closed)


@pytest.fixture
async def opened() -> AsyncIterator[Callable[[], Pipe]]:
    """Open connections over which nothing goes."""
    with ExitStack() as stack:

        def one() -> Pipe:
            connection = SimpleNamespace(_writer=SimpleNamespace(transport=Transport()))
            pipe = Pipe(connection, seconds=60, lost=print)
            stack.callback(pipe.close)
            return pipe

        yield one


QUEUED = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n"
DONE = QUEUED + b"*2\r\n:1\r\n:0\r\n"
TOO_LATE = QUEUED + b"*-1\r\n"
REFUSED = b"+OK\r\n-ERR no\r\n+QUEUED\r\n-EXECABORT no\r\n"


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        pytest.param(DONE, [1, 0], id="a transaction that was carried out"),
        pytest.param(TOO_LATE, None, id="one that came too late"),
        pytest.param(REFUSED, ResponseError, id="one that could not be made"),
    ],
)
async def test_the_last_answer_to_a_transaction_counts_however_it_comes(
    opened: Callable[[], Pipe], said: bytes, answer: Any
) -> None:
    for size in range(1, len(said) + 1):
        pipe = opened()
        before, transaction, after = Order(), Order(ahead=3), Order()
        pipe.send([before, transaction, after])

        told = b":7\r\n" + said + b":8\r\n"
        for start in range(0, len(told), size):
            pipe.data_received(told[start : start + size])

        assert before.answers == [7]
        assert after.answers == [8]
        [last] = transaction.answers
        assert last == answer or (answer is ResponseError and isinstance(last, ResponseError))


async def test_what_comes_ahead_of_an_answer_is_known_as_a_whole(opened: Callable[[], Pipe]) -> None:
    pipe = opened()
    first, second = Order(ahead=3), Order(ahead=3)

    for order in (first, second):
        pipe.send([order])
        pipe.data_received(DONE)

    assert (first.answers, second.answers) == ([[1, 0]], [[1, 0]])
