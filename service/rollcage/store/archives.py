"""
Which rollouts are still to be archived. Where to, and how, is for whoever does it.

Only while somebody asks: an installation without an archive keeps no list.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rollcage.core.ids import RolloutKey
from rollcage.store.link import Link

# What comes late (evidence, the result of a last call) comes by then.
REST: Final = timedelta(seconds=20)

# Longer than writing one batch takes; after that somebody else tries.
_TURN: Final = timedelta(minutes=10)

# Nobody has asked for this long: there is no archive any more.
_ABSENCE: Final = timedelta(hours=1)

_BATCH: Final = 50


@dataclass(frozen=True, slots=True)
class Due:
    """Rollouts that were taken to be archived, and what they are struck off with."""

    ticket: str
    rollouts: tuple[RolloutKey, ...]


class Archives:
    """The list of all rollouts that are to be archived."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def due(self, *, rest: timedelta = REST, turn: timedelta = _TURN) -> Due:
        """Take rollouts that ended a while ago; nobody else gets them during this turn."""
        ticket, rollouts = await self._link.run(
            "due", rest=_ms(rest), turn=_ms(turn), absence=_ms(_ABSENCE), limit=_BATCH
        )
        return Due(ticket.decode(), tuple(RolloutKey(one.decode()) for one in rollouts))

    async def done(self, rollout: RolloutKey, *, ticket: str) -> None:
        """Strike a rollout off; one whose record changed since it was taken comes again."""
        await self._link.run("archived", rollout=rollout, ticket=ticket)


def _ms(time: timedelta) -> int:
    return round(time.total_seconds() * 1000)
