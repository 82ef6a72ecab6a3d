"""
Bring a call's arguments into one spelling, so that the same ones are known again.

The canonical spelling is JSON with sorted names and no white space. Numbers keep
their value: whole ones exactly, whatever their size, others as the nearest
double. Text that is no JSON stays a text, and the toolserver tells the model
that it wanted an object.
"""

import hashlib
import json
import re
from typing import Any, Final, NoReturn

import orjson

from rollcage.rollouts.errors import TooLarge

# The store and the toolserver take 4 MiB with everything around it.
MAX_BYTES: Final = 3 << 20

# As many digits may be more than 64 bits, which the fast reader turns into a double.
_LONG_NUMBER: Final = re.compile(r"\d{19}")


def canonical(arguments: Any) -> bytes:
    """Return the one spelling of *arguments*; a str is JSON text, anything else a JSON value."""
    value = _read(arguments) if isinstance(arguments, str) else arguments
    try:
        spelled = _spell(value)
    except (RecursionError, TypeError, ValueError):
        # Half letters, or deeper than anybody reads; as a text it is refused by whoever wanted an object.
        spelled = orjson.dumps(whole(str(arguments)))
    if len(spelled) > MAX_BYTES:
        raise TooLarge(size=len(spelled), limit=MAX_BYTES)
    return spelled


def fingerprint(tool: str, spelled: bytes) -> str:
    """Return what tells two calls with the same id apart: SHA-256 over tool and canonical arguments."""
    return hashlib.sha256(b"%b\0%b" % (tool.encode(), spelled)).hexdigest()


def whole(text: str) -> str:
    """Return *text* with a question mark for each half of a letter, which no encoding has."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _read(text: str) -> Any:
    try:
        if _LONG_NUMBER.search(text):
            return json.loads(text, parse_constant=_no_number)
        return orjson.loads(text)
    except (RecursionError, ValueError):
        return text


def _spell(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # Whole numbers of more than 64 bits.
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")
