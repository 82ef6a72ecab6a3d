"""
The Lua scripts: every change of more than one step is one of these.

A script is the table of key names, ``base.lua``, the parts that its first line
names after ``uses:``, and its own text. This module puts them together; when a
script runs and what its answer means is said where it is called.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from rollcage.store.keys import TEMPLATES

_USES = "-- uses: "
_PARTS = frozenset({"base", "ending", "index", "pool"})


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script and the name under which a server remembers it."""

    text: str
    sha: str


def load() -> Mapping[str, Script]:
    """Read all scripts, by name."""
    texts = {
        file.name.removesuffix(".lua"): file.read_text()
        for file in files(__name__).iterdir()
        if file.name.endswith(".lua")
    }
    return {name: _assembled(texts, name) for name in texts.keys() - _PARTS}


def _assembled(texts: Mapping[str, str], name: str) -> Script:
    first = texts[name].splitlines()[0]
    uses = first.removeprefix(_USES).split() if first.startswith(_USES) else []
    body = "\n".join(texts[part] for part in ("base", *uses, name))
    # Made anew at every run, so only with what is used.
    table = ", ".join(f"{key} = '{template}'" for key, template in TEMPLATES.items() if f"'{key}'" in body)
    text = f"local KEY = {{{table}}}\n{body}"
    # The server names scripts by their SHA-1; nothing secret rests on it.
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())
