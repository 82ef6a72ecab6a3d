"""
Compare texts, forgiving what the environment says may be forgiven and nothing else.
"""

import re
import unicodedata
from typing import Final

from rollcage.core.graders import Form, TextGrader
from rollcage.grading.builtins.selecting import select, texts
from rollcage.grading.protocol import Context, Refused, Score

_ARTICLES: Final = re.compile(r"\b(?:a|an|the)\b", re.IGNORECASE)


def text_score(grader: TextGrader, context: Context) -> Score:
    """Return 1 if the text is one of the expected, else 0."""
    expected = {spelled(text, grader.ignore) for text in texts(select(grader.expected, context))} - {""}
    if not expected:
        raise Refused(f"{grader.expected} has no text")
    given = texts(select(grader.found, context))
    found = spelled(given[0], grader.ignore) if len(given) == 1 else ""
    right = found in expected or (grader.contains and any(f" {one} " in f" {found} " for one in expected))
    return Score(float(right))


def spelled(text: str, ignore: tuple[Form, ...]) -> str:
    """Return the text without what does not count; always without space around it."""
    if Form.ACCENTS in ignore:
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    else:
        text = unicodedata.normalize("NFC", text)
    if Form.CASE in ignore:
        text = text.casefold()
    if Form.PUNCTUATION in ignore:
        text = "".join(" " if unicodedata.category(c).startswith("P") else c for c in text)
    if Form.ARTICLES in ignore:
        text = _ARTICLES.sub(" ", text)
    return " ".join(text.split()) if Form.SPACE in ignore else text.strip()
