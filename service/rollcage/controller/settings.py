"""
What an operator may choose about the controller.
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Settings:
    """How often it looks and how much it may ask of the cluster."""

    # It acts when something changes; this is for what nobody tells, such as claims from the ready list.
    tick: timedelta = timedelta(seconds=1)

    # Changes come in crowds; one look answers all of them.
    soonest: timedelta = timedelta(seconds=0.2)

    # Comparing the record with what is there, and ending what nobody uses.
    audit: timedelta = timedelta(seconds=10)

    # How often the status of an environment is written at most.
    report: timedelta = timedelta(seconds=2)

    # Writes to the source, creations and deletions together.
    writes_per_second: float = 50.0
    writes_at_once: int = 100
