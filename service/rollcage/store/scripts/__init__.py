"""
The Lua scripts: every change of more than one step is one of these.

A script is the table of key names, its arguments, ``base.lua``, the parts that
its first lines name after ``uses:``, and its own text. This module puts them
together; when a script runs and what its answer means is said where it is
called.

Arguments go along with their names. The one script that every call waits for
names its own after ``takes:`` instead, and is given the values in that order:
reading names takes longer than the rest of a short script. Arguments that it
can do without are the last of them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import TypeVar

from rollcage.store.keys import TEMPLATES

V = TypeVar("V")

# What every script is given, first of all: see base.lua.
ALWAYS = ("retention", "now")

_USES = "-- uses: "
_TAKES = "-- takes: "
_PARTS = frozenset({"base", "calls", "index", "pool"})

_BY_NAME = """local arg = {}
for i = 1, #ARGV, 2 do arg[ARGV[i]] = ARGV[i + 1] end"""


@dataclass(frozen=True, slots=True)
class Script:
    """A whole script, the name under which a server remembers it, and the order of its arguments if they have none."""

    text: str
    sha: str
    takes: tuple[str, ...] = ()

    def words(self, fields: Mapping[str, V]) -> list[str | V]:
        """Return arguments as the script is given them."""
        if self.takes:
            return [fields[name] for name in self.takes[: len(fields)]]
        return list(chain.from_iterable(fields.items()))


def load() -> Mapping[str, Script]:
    """Read all scripts, by name."""
    texts = {
        file.name.removesuffix(".lua"): file.read_text()
        for file in files(__name__).iterdir()
        if file.name.endswith(".lua")
    }
    return {name: _assembled(texts, name) for name in texts.keys() - _PARTS}


def _assembled(texts: Mapping[str, str], name: str) -> Script:
    uses, takes = _named(texts[name], _USES), _named(texts[name], _TAKES)
    body = "\n".join(texts[part] for part in ("base", *uses, name))
    # Made anew at every run, so only with what is used.
    table = ", ".join(f"{key} = '{template}'" for key, template in TEMPLATES.items() if f"'{key}'" in body)
    given = (*ALWAYS, *takes) if takes else ()
    ordered = ", ".join(f"{argument} = ARGV[{number}]" for number, argument in enumerate(given, 1))
    arguments = f"local arg = {{{ordered}}}" if takes else _BY_NAME
    text = f"local KEY = {{{table}}}\n{arguments}\n{body}"
    # The server names scripts by their SHA-1; nothing secret rests on it.
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(), given)


def _named(text: str, label: str) -> tuple[str, ...]:
    found = (line.removeprefix(label).split() for line in text.splitlines() if line.startswith(label))
    return tuple(chain.from_iterable(found))
