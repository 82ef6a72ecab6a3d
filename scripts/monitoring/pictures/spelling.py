"""
Spell figures in Grafana's units: those that our panels use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rollcage.reports.scales import plain, seconds

if TYPE_CHECKING:
    from rollcage.reports.scales import Spelling

_SUFFIX: Final = "suffix:"
_KIBI: Final = 1024


def spelling(unit: str) -> Spelling:
    """Return how figures of a unit are spelled."""
    if unit.startswith(_SUFFIX):
        return lambda value: f"{plain(value)}{unit.removeprefix(_SUFFIX)}"
    return _SPELLINGS[unit]


def _percent(share: float) -> str:
    return f"{share * 100:.3g}%"


def _yes_no(value: float) -> str:
    return "Yes" if value else "No"


def _bytes(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if value < _KIBI:
            return f"{value:.3g} {unit}"
        value /= _KIBI
    return f"{value:.3g} GiB"


_SPELLINGS: Final[dict[str, Spelling]] = {
    "short": plain,
    "s": seconds,
    "percentunit": _percent,
    "reqps": lambda value: f"{plain(value)} req/s",
    "bytes": _bytes,
    "bool_yes_no": _yes_no,
}
