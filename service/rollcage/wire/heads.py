"""
Know an HTTP message's head again.

Whoever keeps a connection says the same head with every message, but for the
length of the body. Parsing it takes a good part of the time that a call has
here, so both ends of a gateway remember what a head meant and look only for
its length. A head is known again by all of its other bytes, so it cannot mean
anything else than it did when it was parsed.
"""

from collections.abc import Iterable
from typing import Final, TypeAlias

# A head's bytes before its length and after it.
Head: TypeAlias = tuple[bytes, bytes]

# As clients and servers spell it; one that is spelled otherwise is not known again, and parsed every time.
_LENGTH: Final = b"\r\nContent-Length: "
_LENGTH_TOO: Final = b"\r\ncontent-length: "
_MOST_DIGITS: Final = 9

# With one of these the length is not all that tells where a message ends, or what is to be done before.
_UNCLEAR: Final = frozenset({b"transfer-encoding", b"expect", b"upgrade", b"trailer"})


def parted(data: bytes) -> tuple[Head, bytes] | None:
    """Return head and body if *data* reads as one whole message; else None."""
    head, end, body = data.partition(b"\r\n\r\n")
    before, found, after = head.partition(_LENGTH)
    if not found:
        before, _, after = head.partition(_LENGTH_TOO)
    length, _, rest = after.partition(b"\r\n")
    if not end or not length.isdigit() or len(length) > _MOST_DIGITS or int(length) != len(body):
        return None
    return (before, rest), body


def plain(names: Iterable[bytes]) -> bool:
    """Tell by the lower-case names of its headers whether a head may be known again: one length, and no way around."""
    counted = list(names)
    return counted.count(b"content-length") == 1 and _UNCLEAR.isdisjoint(counted)
