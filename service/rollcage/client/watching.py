"""
Read a call's server-sent events; no network here.

A stream that breaks is taken up again under the same call id, by joining the
call that still runs. A watch keeps count of what was seen over all of its
streams, so that a gap says how much is really missing and nothing comes twice.
"""

import codecs
import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rollcage.client import models
from rollcage.client.errors import BadAnswer, Unreachable
from rollcage.client.exchange import problem
from rollcage.client.requests import Request


@dataclass(frozen=True, slots=True)
class Output:
    """What a running command wrote to a *stream*: the exact bytes, and as much text as they complete."""

    stream: str
    data: bytes
    text: str


@dataclass(frozen=True, slots=True)
class Gap:
    """So many bytes of output were missed here; the result has what the model sees of them."""

    bytes: int


Piece = Output | Gap
Event = Piece | models.Call


def watched(request: Request[models.Call]) -> Request[models.Call]:
    """Return the request that makes the same call and watches it."""
    return replace(request, path=f"{request.path}/stream")


class Watch:
    """One call that is watched, over as many streams as it takes."""

    def __init__(self) -> None:
        self._seen = 0
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._rest = b""
        self._joining = True
        self._name = ""

    def join(self) -> None:
        """Begin to read another stream of the same call."""
        self._rest, self._joining = b"", True

    def read(self, data: bytes) -> Iterator[Event]:
        """Yield what *data* completes; raises what the service refuses with."""
        # By line feeds alone: what a model writes may hold every other line break there is.
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            field, _, value = line.rstrip(b"\r").partition(b": ")
            if field == b"event":
                self._name = value.decode(errors="replace")
            elif field == b"data":
                try:
                    event = self._event(self._name, json.loads(value))
                except (ValueError, KeyError, TypeError) as error:
                    raise BadAnswer("the stream of a call holds something else") from error
                if event:
                    yield event

    @staticmethod
    def broken() -> Unreachable:
        """Return what it means that a stream ended without a result."""
        return Unreachable("the stream of a call broke off", sent=True)

    def _event(self, name: str, told: Mapping[str, Any]) -> Event | None:
        match name:
            case "output":
                return self._output(told)
            case "gap":
                return self._gap(told["bytes"])
            case "result":
                return models.Call.model_validate(told)
            case "error":
                raise problem(int(told["status"]), told)
        return None  # of a later release

    def _output(self, told: Mapping[str, Any]) -> Output:
        stream = str(told["stream"])
        data = str(told["text"]).encode() if "text" in told else b64decode(told["base64"])
        self._joining = False
        self._seen += len(data)
        if stream not in self._decoders:
            self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        return Output(stream, data, self._decoders[stream].decode(data))

    def _gap(self, missed: int) -> Gap | None:
        if self._joining:
            # The first gap of a stream counts from the call's beginning, with what an earlier stream has shown.
            missed -= self._seen
        self._joining = False
        if missed <= 0:
            return None
        self._seen += missed
        self._decoders.clear()
        return Gap(missed)
