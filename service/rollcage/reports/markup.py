"""
Put markup together so that no text can become markup.

Ids and outputs were chosen by a model. A text gets into a page only through
``element``, which escapes it; what is ``Markup`` already came from there.
"""

from html import escape
from typing import Final, NewType

Markup = NewType("Markup", str)

EMPTY: Final = Markup("")

# Characters that no page may hold, and those that turn the direction of writing.
_UNSAFE: Final = frozenset("\x7f\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def element(name: str, *children: Markup, **attributes: object) -> Markup:
    """
    Return an element. Attributes that are None are left out, ``class_`` is spelled class, ``_`` is a hyphen.

    Children are markup; plain text goes through ``text`` first.
    """
    spelled = "".join(
        f' {attribute.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for attribute, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{spelled}>{''.join(children)}</{name}>")


def text(value: object) -> Markup:
    """Return a text as it can stand between tags."""
    return Markup(escape(_printable(str(value))))


def joined(*parts: Markup) -> Markup:
    """Return parts one after the other."""
    return Markup("".join(parts))


def _number(value: object) -> str:
    # A tenth of a pixel is more than anybody sees, and digits are most of a page's size.
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else _printable(str(value))


def _printable(value: str) -> str:
    return "".join(
        "\ufffd" if (character < " " and character not in "\n\t") or character in _UNSAFE else character
        for character in value
    )
