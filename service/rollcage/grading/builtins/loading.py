"""
Find a team's grading function by its name. Only ever called in a worker process.
"""

import importlib
from collections.abc import Callable
from typing import Any

from rollcage.grading.protocol import Context


def load(name: str) -> Callable[[Context], Any]:
    """Import ``package.module:function``; whatever goes wrong is the grader's crash."""
    module, _, function = name.partition(":")
    found: Callable[[Context], Any] = getattr(importlib.import_module(module), function)
    if not callable(found):
        raise TypeError(f"{name} is no function")
    return found
