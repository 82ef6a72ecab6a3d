"""Decide which skipped tests nobody has explained."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def unexplained(skips: Iterable[str], allowed: str) -> list[str]:
    """Return the skips (``<test id>: <reason>``) that no line of *allowed* matches."""
    lines = (line.split("#")[0].strip() for line in allowed.splitlines())
    patterns = [re.compile(line) for line in lines if line]
    return [skip for skip in skips if not any(pattern.search(skip) for pattern in patterns)]
