"""
The SDK for programs that use a Rollcage service.

Small on purpose: it needs none of the service's dependencies. ``requests``
and ``acts`` say what can be asked, ``blocking`` and ``aio`` send it.
"""

from rollcage.client.aio import AsyncClient
from rollcage.client.aio_rollouts import AsyncRollout, AsyncSession
from rollcage.client.blocking import Client
from rollcage.client.blocking_rollouts import Rollout, Session
from rollcage.client.patience import Patience
from rollcage.client.watched import AsyncWatched, Watched
from rollcage.client.watching import Gap, Output

__all__ = [
    "AsyncClient",
    "AsyncRollout",
    "AsyncSession",
    "AsyncWatched",
    "Client",
    "Gap",
    "Output",
    "Patience",
    "Rollout",
    "Session",
    "Watched",
]
