"""
Write what an Agent RFT trainer can bear.

Pure. The platform shows the model every 4xx and every output, retries a 5xx
and then throws the rollout away. So the model's own doing is always a 200 with
a text, our own faults are always a 5xx, and a 4xx is left for requests that no
configured trainer sends.
"""

import math
from dataclasses import replace
from http import HTTPStatus
from typing import Final

import orjson

from rollcage.core.errors import RollcageError, RolloutEnded
from rollcage.core.verdict_words import Word
from rollcage.gateway.problems import Problem, problem_of

# The platform calls a megabyte too large; whether it counts 10^6 or 2^20 bytes is not written anywhere.
LARGEST_ANSWER: Final = 1_000_000

# What a model is told of errors that it, or its trainer's bookkeeping, brought about.
_TEXTS: Final = {
    "call_conflict": "This call id was used before with other arguments; nothing was run.",
    "record_full": "This rollout has made as many calls as it may; nothing was run.",
    "arguments_too_large": "The arguments are too large; nothing was run.",
}

_OVER: Final = "This rollout is over; nothing was run."

# No trainer that is set up right sends these; whoever does should read why.
_SENDERS_OWN: Final = frozenset(
    {
        "bad_id",
        "bad_request",
        "not_authorized",
        "no_such_route",
        "wrong_method",
        "body_too_large",
        "body_too_slow",
        "body_encoded",
    }
)

# Room for the line that says what was left out.
_NOTE_ROOM: Final = 200


def output_body(*, call_id: str, own_id: str, output: str) -> bytes:
    """Return the answer's body, always below a megabyte however much of it must be escaped."""
    try:
        body = _body(call_id, own_id, output)
    except orjson.JSONEncodeError:
        # Half a surrogate pair has no UTF-8.
        output = output.encode(errors="replace").decode()
        body = _body(call_id, own_id, output)
    if len(body) < LARGEST_ANSWER:
        return body
    room = LARGEST_ANSWER - 1 - _NOTE_ROOM - len(_body(call_id, own_id, ""))
    return _body(call_id, own_id, _cut(output, room))


def score_body(score: float) -> bytes:
    """Return the answer to a request for a score: a finite number, always."""
    if not math.isfinite(score):
        raise ValueError("no score")
    return orjson.dumps({"score": score})


def text_of(error: Exception) -> str | None:
    """Return what the model is told instead of a status, or None if the error is not for it."""
    if not isinstance(error, RollcageError):
        return None
    if isinstance(error, RolloutEnded):
        # Only a rollout that may be trained on has a model that should hear of it. One that was given up as
        # abandoned, and whose trainer comes back, would be trained to believe that its tools had failed.
        return _OVER if error.verdict == Word.TRAINABLE else None
    return _TEXTS.get(error.code)


def refusal_of(error: Exception) -> Problem:
    """Return the problem in a status that trains nobody: a 5xx, unless the sender alone is to blame."""
    problem = problem_of(error)
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR or problem.code in _SENDERS_OWN:
        return problem
    return replace(problem, status=HTTPStatus.SERVICE_UNAVAILABLE)


def _body(call_id: str, own_id: str, output: str) -> bytes:
    return orjson.dumps({"type": "function_call_output", "call_id": call_id, "id": own_id, "output": output})


def _cut(output: str, room: int) -> str:
    """Leave out the middle so that the rest, escaped, takes at most *room* bytes."""
    characters = len(output)
    fewest, most = 0, characters
    while fewest < most:
        kept = (fewest + most + 1) // 2
        if len(orjson.dumps(output[: kept - kept // 2] + output[characters - kept // 2 :])) <= room:
            fewest = kept
        else:
            most = kept - 1
    head, tail = fewest - fewest // 2, fewest // 2
    note = f"\n[{characters - fewest} of {characters} characters left out: too large for the trainer]\n"
    return output[:head] + note + output[characters - tail :]
