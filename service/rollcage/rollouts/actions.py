"""
What is asked of a rollout, and what it answers.

Values only. An answer is made of the very bytes that the record keeps, so that
a repeat is the same to the byte.
"""

import itertools
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import orjson

from rollcage.core.environment import Environment
from rollcage.core.ids import RolloutId, RolloutKey, trainers_id
from rollcage.core.values import value
from rollcage.rollouts.arguments import canonical, fingerprint, whole
from rollcage.rollouts.errors import TooLarge
from rollcage.store.calls import MAX_PAYLOAD, Call, CallEnding

# As many rollouts may wait for a sandbox of one environment unless the caller says otherwise.
MAX_WAITING: Final = 1000

_PROCESS: Final = secrets.token_hex(12)
_ATTEMPTS: Final = itertools.count()

# Said in a refusal's data, for programs and for a repeat.
_ENDED: Final = "sandbox_ended"


class Outcome(StrEnum):
    """The class under which an answered call is counted; each of them is the model's own doing."""

    OK = "ok"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    MALFORMED = "malformed"
    REFUSED = "refused"  # a budget is spent, too many calls at once, or the sandbox is gone by its own doing


# Looked up: making one of its value takes several times as long.
_OUTCOMES: Final = MappingProxyType({outcome.value: outcome for outcome in Outcome})


@value
class Action:
    """One tool call of a rollout, and how long all of it may take."""

    rollout: RolloutId
    run: str
    environment: Environment
    call_id: str
    tool: str
    # A str is JSON text as the trainer sent it, anything else a JSON value.
    arguments: Any
    within: timedelta
    max_waiting: int = MAX_WAITING


@value
class Answer:
    """What the model is told, and the record behind it."""

    output: str
    outcome: Outcome
    # The whole result as it is recorded, JSON.
    result: bytes
    replayed: bool = False
    # The sandbox is gone by the model's own doing.
    ended: bool = False
    # The output was cut; the facts tell how much of how much is missing.
    truncated: bool = False

    def ending(self, boot: str = "") -> CallEnding:
        """Return what the record keeps of it; *boot*: the sandbox's that answered."""
        return CallEnding(self.result, self.outcome, boot, len(self.output))

    @property
    def data(self) -> dict[str, Any]:
        """What a program may want besides the text."""
        return dict(orjson.loads(self.result).get("data") or {})

    @property
    def facts(self) -> dict[str, Any]:
        """What the sandbox measured; empty if nothing ran."""
        return dict(orjson.loads(self.result).get("facts") or {})


@dataclass(slots=True)
class Prepared:
    """An action, ready to be sent, and ready to be recorded once somebody asks for that."""

    action: Action
    key: RolloutKey
    # As its sandbox is sent it.
    body: bytes
    attempt: str
    # What it is known again by.
    tool: str
    spelled: bytes
    _call: Call | None = None

    @property
    def call(self) -> Call:
        """The call as the record knows it; made when it is first wanted, since a call need not wait for it."""
        if self._call is None:
            digest = fingerprint(self.tool, self.spelled)
            self._call = Call(id=self.action.call_id, hash=digest, attempt=self.attempt, arguments=self.body)
        return self._call


def prepare(action: Action) -> Prepared:
    """Check the ids, spell the arguments; raises BadId or TooLarge."""
    trainers_id("call", action.call_id)
    tool, spelled = whole(action.tool), canonical(action.arguments)
    # Put together by hand: the arguments are spelled already, and every byte is encoded once.
    body = b'{"call_id":%b,"tool":%b,"arguments":%b}' % (
        orjson.dumps(action.call_id),
        orjson.dumps(tool),
        spelled,
    )
    if len(body) > MAX_PAYLOAD:
        raise TooLarge(size=len(body), limit=MAX_PAYLOAD)
    return Prepared(action, action.rollout.key, body, _fresh_attempt(), tool, spelled)


def _fresh_attempt() -> str:
    # Unlike any other's, without asking the system for randomness at every call.
    return f"{_PROCESS}-{next(_ATTEMPTS):x}"


def told(action: Action, output: str, outcome: Outcome, *, ended: bool = False) -> Answer:
    """Answer in the service's own words, in the same shape as a sandbox's result."""
    result = {
        "call_id": action.call_id,
        "tool": whole(action.tool),
        "class": outcome,
        "output": output,
        "data": {_ENDED: True} if ended else {},
        "facts": {},
    }
    return Answer(output, outcome, orjson.dumps(result), ended=ended)


def recorded(result: bytes, *, replayed: bool) -> Answer:
    """Read an answer from what the record keeps."""
    fields = orjson.loads(result)
    return answered(result, fields, replayed=replayed)


def answered(result: bytes, fields: Mapping[str, Any], *, replayed: bool) -> Answer:
    """Make an answer of a result that was read already."""
    return Answer(
        fields["output"],
        _OUTCOMES[fields["class"]],
        result,
        replayed=replayed,
        ended=fields["class"] == Outcome.REFUSED and _ENDED in fields["data"],
        truncated=bool(fields["facts"].get("truncated")),
    )
