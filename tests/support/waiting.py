"""
Waiting for a condition instead of a time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Local processes change within milliseconds.
POLL = 0.01


def until(look: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Return as soon as *look* says yes; that it never does is an error."""
    deadline = time.monotonic() + seconds
    while not look():
        assert time.monotonic() < deadline, f"still not so after {seconds:.0f} s"
        time.sleep(POLL)
