"""
What a look at one thing found.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"  # it works, and somebody should know
    BROKEN = "broken"  # it does not work until this is mended


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what is so, and what to do about it."""

    check: str
    level: Level
    said: str
    remedy: str = ""


def ok(check: str, said: str) -> Finding:
    """Say that a thing is as it should be."""
    return Finding(check, Level.OK, said)


def warning(check: str, said: str, remedy: str) -> Finding:
    """Say that a thing works, but not as well as it could."""
    return Finding(check, Level.WARNING, said, remedy)


def broken(check: str, said: str, remedy: str) -> Finding:
    """Say that a thing does not work."""
    return Finding(check, Level.BROKEN, said, remedy)


def any_broken(findings: Iterable[Finding]) -> bool:
    """Say whether something has to be mended."""
    return any(finding.level is Level.BROKEN for finding in findings)
