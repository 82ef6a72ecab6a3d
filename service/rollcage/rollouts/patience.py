"""
How long the use cases wait for what, and how often they try.
"""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Patience:
    """Bounds of waiting; each is also bounded by what is left of the caller's own time."""

    # A node answers within milliseconds; packets that are dropped are sent again after one and three seconds.
    connect: timedelta = timedelta(seconds=5)

    # After a sandbox was lost: how long the controller may take to say why. A kubelet tells of a dead
    # container within some three seconds, so by then it has spoken, unless it cannot. A gateway that
    # spoke first would mask what the model did itself; one that waited for ever would hold the trainer up.
    word: timedelta = timedelta(seconds=20)

    # After so long without Redis a rollout that runs goes on without it; it answers within a millisecond.
    store: timedelta = timedelta(seconds=2)

    # A live gateway sends a call at once after marking it. One that the sandbox still has not heard of
    # after this belonged to a gateway that died in between.
    unheard: timedelta = timedelta(seconds=10)

    # How long a call is tried again that a sandbox turned away for too many at once.
    busy: timedelta = timedelta(seconds=20)

    # What is kept back of the caller's time, to say how it ended.
    reserve: timedelta = timedelta(seconds=1)

    # A rollout that finds so many sandboxes dead in a row is not helped by another one.
    placements: int = 5

    # A call that the sandbox itself says never arrived is sent again so often.
    sendings: int = 3
