"""
The scores of rollouts, and for a while what was taken out of their sandboxes to be graded.

A score is kept as it is given, once, unless it is asked to replace one; how it
came about was decided elsewhere.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from rollcage.core.ids import RolloutKey
from rollcage.store.link import Link

# A trainer asks again within minutes; what is in a sandbox is large, and memory is dear.
ARTIFACTS_KEPT: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Kept:
    """What stands in the record, and whether it is what was just given."""

    record: bytes
    first: bool


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken out of a sandbox: an account of it (JSON), and the bytes."""

    account: bytes
    content: bytes


class Scores:
    """The scores of all rollouts."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def get(self, rollout: RolloutKey) -> bytes | None:
        """Return the score's record (JSON), if the rollout has one."""
        found: bytes | None = await self._link.ask("GET", self._link.keys("score", rollout))
        return found

    async def keep(self, rollout: RolloutKey, *, score: float, record: bytes, item: str, replace: bool = False) -> Kept:
        """Keep a score, or learn which one stands; raises RolloutUnknown, and RolloutEnded for a masked rollout."""
        fields: dict[str, str | int] = {"replace": 1} if replace else {}
        first, stands = await self._link.run(
            "score", rollout=rollout, score=repr(score), record=record, item=item, **fields
        )
        return Kept(stands, bool(first))

    async def taken(self, rollout: RolloutKey) -> Taken | None:
        """Return what was taken out of the rollout's sandbox, if that was not long ago."""
        account, content = await self._link.ask("HMGET", self._link.keys("artifacts", rollout), "account", "content")
        return None if account is None else Taken(account, content)

    async def take(self, rollout: RolloutKey, taken: Taken) -> Taken:
        """Keep what was taken out, or learn what somebody took before: everybody grades the same."""
        account, content = await self._link.run(
            "take",
            rollout=rollout,
            account=taken.account,
            content=taken.content,
            kept_for=int(ARTIFACTS_KEPT.total_seconds() * 1000),
        )
        return Taken(account, content)
