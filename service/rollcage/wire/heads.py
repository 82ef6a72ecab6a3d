"""
Know an HTTP message's head again.

Whoever keeps a connection says the same head with every message, but for the
length of the body. Parsing it takes a good part of the time that a call has
here, so both ends of a gateway remember what a head meant and look only for
its length. A head is known again by all of its other bytes, so it cannot mean
anything else than it did when it was parsed.
"""

import re
from collections.abc import Iterable
from typing import Final

from rollcage.core.values import value

_MOST_DIGITS: Final = 9

# As clients and servers space it; one that is spaced otherwise is not known again, and parsed every time.
_LENGTH: Final = re.compile(rb"\r\nContent-Length: (\d{1,%d})\r\n" % _MOST_DIGITS, re.IGNORECASE)

_END: Final = b"\r\n\r\n"

# With one of these the length is not all that tells where a message ends, or what is to be done before.
_UNCLEAR: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"trailer"})


@value
class Head:
    """A head's bytes before its length and after it, to its end."""

    before: bytes
    after: bytes

    def body(self, data: bytes) -> bytes | None:
        """Return the body if *data* is one whole message with this head; else None."""
        start = len(self.before)
        end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        if end < 0 or not data.startswith(self.before) or not data.startswith(self.after, end):
            return None
        length, body = data[start:end], data[end + len(self.after) :]
        return body if length.isdigit() and int(length) == len(body) else None


def head_of(data: bytes) -> Head | None:
    """Return the head if *data* reads as one whole message; else None."""
    end = data.find(_END) + len(_END)
    found = _LENGTH.search(data, 0, end)
    head = found and Head(data[: found.start(1)], data[found.end(1) : end])
    return head if head and head.body(data) is not None else None


def plain(names: Iterable[bytes]) -> bool:
    """Tell by the lower-case names of its headers whether a head may be known again: one length, and no way around."""
    counted = list(names)
    return counted.count(b"content-length") == 1 and _UNCLEAR.isdisjoint(counted)
