"""
What gateway and worker say to each other: a JSON text and bytes, both with their lengths in front.

Bytes travel as they are, named by a list of names and sizes in the text.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

HEAD: Final = struct.Struct(">II")

# A record of 64 MiB and as many artifacts, both ways.
MOST: Final = 160 << 20


class BadFrame(Exception):
    """What came is no frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message."""

    fields: Mapping[str, Any]
    content: bytes = b""

    def encoded(self) -> bytes:
        """Return the message as it is sent."""
        text = json.dumps(self.fields).encode()
        return HEAD.pack(len(text), len(self.content)) + text + self.content

    @classmethod
    def of(cls, fields: Mapping[str, Any], **parts: Mapping[str, bytes]) -> "Frame":
        """Make a message with several named groups of named bytes."""
        sizes = {group: [[name, len(one)] for name, one in named.items()] for group, named in parts.items()}
        content = b"".join(one for named in parts.values() for one in named.values())
        return cls({**fields, "sizes": sizes}, content)

    def parts(self, group: str) -> dict[str, bytes]:
        """Return a group of named bytes."""
        found: dict[str, bytes] = {}
        start = 0
        for one, named in self.fields.get("sizes", {}).items():
            for name, size in named:
                if one == group:
                    found[name] = self.content[start : start + size]
                start += size
        return found


@dataclass(frozen=True, slots=True)
class Lengths:
    """What the head of a frame says."""

    text: int
    content: int = field(default=0)


def lengths(head: bytes, *, most: int = MOST) -> Lengths:
    """Read the head, or raise BadFrame for one that promises too much."""
    text, content = HEAD.unpack(head)
    if text + content > most:
        raise BadFrame(f"{text + content} bytes, {most} may be")
    return Lengths(text, content)


def decoded(text: bytes, content: bytes) -> Frame:
    """Read a frame, or raise BadFrame."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame("no JSON") from error
    if not isinstance(fields, dict):
        raise BadFrame("no object")
    return Frame(fields, content)


def read_blocking(source: BinaryIO) -> Frame:
    """Read a frame, waiting for it; raises EOFError."""
    head = source.read(HEAD.size)
    if len(head) < HEAD.size:
        raise EOFError
    sizes = lengths(head)
    return decoded(source.read(sizes.text), source.read(sizes.content))
