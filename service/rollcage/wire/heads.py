"""
Know an HTTP message's head again.

Whoever keeps a connection says the same head with every message, but for the
length of the body. Parsing it takes a good part of the time that a call has
here, so both ends of a gateway remember what a head meant and look only for
its length. A head is known again by all of its other bytes, so it cannot mean
anything else than it did when it was parsed.
"""

from collections.abc import Iterable
from typing import Final

_LINE_END: Final = b"\r\n"
_END: Final = b"\r\n\r\n"

# As clients and servers spell it; one that is spelled otherwise is not known again, and parsed every time.
_LENGTH: Final = (b"\r\ncontent-length: ", b"\r\nContent-Length: ")

_MOST_DIGITS: Final = 9

# With one of these the length is not all that tells where a message ends, or what is to be done before.
_UNCLEAR: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"trailer"})


def parted(data: bytes) -> tuple[bytes, bytes] | None:
    """Return the head without its length, and the body, if *data* reads as one whole message; else None."""
    end = data.find(_END)
    if end < 0:
        return None
    for name in _LENGTH:
        found = data.find(name, 0, end)
        if found > 0:
            first = found + len(name)
            last = data.find(_LINE_END, first)
            digits = data[first:last]
            body = end + len(_END)
            if digits.isdigit() and len(digits) <= _MOST_DIGITS and body + int(digits) == len(data):
                return data[:first] + data[last:end], data[body:]
    return None


def plain(names: Iterable[bytes]) -> bool:
    """Tell by the lower-case names of its headers whether a head may be known again: one length, and no way around."""
    counted = list(names)
    return counted.count(b"content-length") == 1 and _UNCLEAR.isdisjoint(counted)
