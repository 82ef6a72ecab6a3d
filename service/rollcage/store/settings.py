"""
What an operator may choose about the store.

Defaults are for a service of a few gateways and thousands of sandboxes.
"""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the store is, how long it keeps and how long it waits."""

    url: str

    # For TLS (rediss://) the certificate that signed the server's; those that everybody trusts unless given.
    ca: Path | None = None

    # Two installations may share a server.
    namespace: str = "rollcage"

    # After its last change a rollout, with its calls and its verdict, is kept this long.
    retention: timedelta = timedelta(days=7)

    # A server that has not answered by then is taken for gone; an answer takes about a millisecond.
    timeout: timedelta = timedelta(seconds=2)

    # A waiter not heard of for this long is taken for gone, and its place goes to the next.
    heartbeat: timedelta = timedelta(seconds=15)

    # How often a waiter asks without having been told to: it keeps the place, and covers for a lost message.
    reask: timedelta = timedelta(seconds=5)

    # Bounds on one rollout's record; beyond them no further call is begun.
    max_calls: int = 10_000
    max_record_bytes: int = 64 << 20
