"""
Write what was decided on by looking, unless it has changed since: Redis' own transactions.

One at a time on a connection, since the end of any transaction ends every
watch. Nothing is sent a second time: with its connection a watch is lost too.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from redis.exceptions import ResponseError

from rollcage.store.pipe import Command, Pipe, packed

BEGIN: Final = packed(("MULTI",))
END: Final = packed(("EXEC",))
_GIVE_UP: Final = packed(("UNWATCH",))


class _Once:
    """Something that is sent once; *then* gets the last answer to it, or None if that is lost."""

    __slots__ = ("_then", "ahead", "packed")

    def __init__(self, packed: bytes, then: Callable[[Any], None], *, ahead: int = 0) -> None:
        self.packed = packed
        self.ahead = ahead
        self._then = then

    def answered(self, answer: Any) -> None:
        """Pass the answer on."""
        self._then(answer)

    def lost(self, *, closed: bool) -> bool:
        """Tell that it will not be answered; it is not to be sent again."""
        del closed
        self._then(None)
        return False


class Watch:
    """A key that is watched from a look at it on; *over* is told when the next one may be."""

    def __init__(
        self,
        pipe: Pipe,
        key: str,
        look: Sequence[Command],
        *,
        seen: Callable[[list[Any]], None],
        over: Callable[[], None],
    ) -> None:
        """Look; *seen* gets what there is, unless something goes wrong."""
        self._pipe = pipe
        self._seen = seen
        self._over = over
        self._open = True
        self._answers: list[Any] = []
        self._questions = 1 + len(look)
        pipe.send([_Once(packed(command), self._saw) for command in (("WATCH", key), *look)])

    def write(self, transaction: bytes, *, commands: int, then: Callable[[bool], None]) -> bool:
        """
        Carry a packed transaction of so many *commands* out, all of it or nothing, and watch no longer.

        *then* gets whether it was carried out; not if this returns False, since nobody watches any more.
        Only for whoever has seen what there is.
        """
        if not (self._open and self._pipe.usable):
            self.end()
            return False
        self._leave()
        # One that came too late is answered with nothing, one that could not be made with an error.
        self._pipe.send([_Once(transaction, lambda said: then(isinstance(said, list)), ahead=1 + commands)])
        return True

    def end(self) -> None:
        """Watch no longer."""
        if self._open:
            self._leave()
            if self._pipe.usable:
                self._pipe.send([_Once(_GIVE_UP, _nothing)])

    def _leave(self) -> None:
        self._open = False
        self._over()

    def _saw(self, answer: Any) -> None:
        if answer is None or isinstance(answer, ResponseError):
            # Without an answer to each question there is nothing to go by.
            self._questions = 0
            return
        self._answers.append(answer)
        if self._open and len(self._answers) == self._questions:
            self._seen(self._answers[1:])


def _nothing(answer: Any) -> None:
    del answer
