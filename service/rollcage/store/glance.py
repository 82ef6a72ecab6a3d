"""
Keep a plain call with its end in plain commands, where all that ``begin.lua`` would decide is decided already.

While the sandbox works, the rollout's record is looked at and watched. In
nearly every call it is as it should be and stays so until the call is over;
then the one write is left that the script would make, and it is made here,
unless the record has changed. Everything else is left to the script: nothing is
refused here. Redis takes a fraction of the script's time for it: most of that
goes into running Lua at all, not into what the script asks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from rollcage.store.pipe import packed
from rollcage.store.watch import BEGIN, END

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rollcage.store.link import Link, Step
    from rollcage.store.watch import Watch

_FIELDS: Final = (
    *("state", "sandbox", "verdict", "boot"),
    *("environment", "run", "calls", "delivered", "bytes", "kept_at"),
)

# As in calls.lua: how much of its retention may have passed before a record is prolonged, which is the script's.
_PROLONGED_AFTER: Final = 100

# As begin.lua answers for a call that it has kept.
KEPT: Final = b"kept"

# The words that are known only at the end, and what their packed form begins with: it goes behind others.
_LATE_WORDS: Final = 6
_LATE_COUNT: Final = b"*%d\r\n" % _LATE_WORDS


class Glance:
    """The record of a call's rollout, as seen while the call runs."""

    def __init__(self, link: Link, step: Step, *, lasted: int) -> None:
        """Look, for a call that *step* would begin and that was sent so many milliseconds ago."""
        self._link = link
        self._given = cast("Mapping[str, Any]", step.fields)
        self._lasted = lasted
        self._key = link.keys("rollout", self._given["rollout"])
        # What is to be written as far as it is known; None while nothing can be written here.
        self._before: bytes | None = None
        self.answer: list[Any] = []
        look = (("TIME",), ("HMGET", self._key, *_FIELDS, f"call:{self._given['call']}"))
        self._watch: Watch | None = link.watch(self._key, *look, seen=self._saw)

    @property
    def is_taken(self) -> bool:
        """Whether there was an opportunity to look."""
        return self._watch is not None

    def keep(self, result: bytes, *, outcome: str, shown: int, after: int, then: Callable[[bool], None]) -> bool:
        """
        Keep what the call came to, so many milliseconds *after* the look, and look no longer.

        *then* gets whether it is kept: not if the record has changed. Then, and if this returns False, it is for the
        script to do; else ``answer`` is what the script would have answered.
        """
        if self._watch is None or self._before is None:
            self.end()
            return False
        marked, kept = self._names
        mark = f"{self._mark} {self._seen_at + after} {outcome} {shown}"
        late = packed(("bytes", self._size + len(result), marked, mark, kept, result))
        counted = packed(("HINCRBY", self._run, f"outcome:{outcome}", 1)) if self._run else b""
        transaction = b"".join((self._before, late[len(_LATE_COUNT) :], counted, END))
        return self._watch.write(transaction, commands=3 if counted else 2, then=then)

    def end(self) -> None:
        """Look no longer."""
        if self._watch:
            self._watch.end()

    def _saw(self, answers: list[Any]) -> None:
        """Get ready to do what ``begin.lua`` would, if all is as it should be."""
        time, fields = answers
        state, sandbox, verdict, boot, environment, run, calls, delivered, size, kept_at, known = fields
        link, given = self._link, self._given
        count, kept, seen_at = int(calls or 0), int(size or 0), link.milliseconds(time)
        if (
            state != b"bound"
            or sandbox != given["sandbox"].encode()
            or verdict is not None
            or known is not None
            or not (boot and environment)
            or count >= given["max_calls"]
            or kept >= given["max_bytes"]
            or seen_at - int(kept_at or 0) > link.retention / _PROLONGED_AFTER
        ):
            return
        number, begun_at = count + 1, seen_at - self._lasted
        self.answer = [KEPT, number, begun_at]
        self._names = f"mark:{number}", f"result:{number}"
        self._mark = f"{given['call']} {given['hash']} {given['attempt']} {begun_at}"
        self._seen_at, self._size = seen_at, kept + len(given["arguments"])
        self._run = link.keys("run", run.decode()) if run else None
        words = (
            *("HSET", self._key, "calls", number, "delivered", int(delivered or 0) + 1),
            *(f"call:{given['call']}", number, f"asked:{number}", given["arguments"]),
        )
        # Alive when it was looked at: whoever counts in minutes does not mind the milliseconds since.
        alive = packed(("ZADD", link.keys("activity", environment.decode()), seen_at, given["rollout"]))
        known_words = packed(words)
        self._before = b"%b%b*%d%b" % (
            BEGIN,
            alive,
            len(words) + _LATE_WORDS,
            known_words[known_words.index(b"\r") :],
        )
