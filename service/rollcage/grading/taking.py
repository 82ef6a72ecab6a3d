"""
Take artifacts out of a rollout's sandbox, once, after it was sealed and before the rollout is ended.

What the model made impossible (directories that are gone or too large, a
sandbox that it ended itself) is told as absent. What the infrastructure lost is
raised. The rollout has no verdict yet while this goes on, so that a sandbox
that dies meanwhile gets the one it deserves.
"""

import asyncio
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

import structlog

from rollcage.core.errors import RolloutEnded
from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause, Word
from rollcage.grading.errors import ArtifactsMissing
from rollcage.grading.fresh import TooMuch, fetch
from rollcage.rollouts.errors import FileRefused, Masked, SandboxUnreachable
from rollcage.rollouts.routes import Reach
from rollcage.rollouts.sealing import seal
from rollcage.rollouts.views import RolloutVerdict
from rollcage.store.scores import Taken

# As long as a gateway waits for the controller's word on a lost sandbox.
_WORD: Final = timedelta(seconds=20)
_LOOK_AGAIN: Final = 0.25

_log = structlog.get_logger()


class UseCases(Protocol):
    """What is needed of rollouts."""

    async def reach(self, rollout: RolloutId) -> Reach: ...  # noqa: D102
    async def verdict(self, rollout: RolloutId) -> RolloutVerdict: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Export:
    """Tar archives by directory; *absent* says why others are not there."""

    archives: Mapping[str, bytes] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)

    def taken(self) -> Taken:
        """Return it as it is kept."""
        sizes = [[path, len(archive)] for path, archive in self.archives.items()]
        account = json.dumps({"sizes": sizes, "absent": dict(self.absent)}).encode()
        return Taken(account, zlib.compress(b"".join(self.archives.values()), 1))

    @classmethod
    def read(cls, taken: Taken) -> "Export":
        """Read it as it was kept."""
        account, content = json.loads(taken.account), zlib.decompress(taken.content)
        archives, start = {}, 0
        for path, size in account["sizes"]:
            archives[path] = content[start : start + size]
            start += size
        return cls(archives, account["absent"])


def nothing(paths: Sequence[str], reason: str) -> Export:
    """Say that nothing is there, by the model's own doing."""
    return Export(absent=dict.fromkeys(paths, reason))


async def exported(use_cases: UseCases, rollout: RolloutId, paths: Sequence[str], *, most: int) -> Export:
    """Take the directories out; raises Masked, ArtifactsMissing."""
    archives: dict[str, bytes] = {}
    absent: dict[str, str] = {}
    try:
        await _sealed(await use_cases.reach(rollout), rollout)
        for path in paths:
            left = most - sum(map(len, archives.values()))
            try:
                archives[path] = await fetch(await use_cases.reach(rollout), "/v1/tree", path, most=left)
            except FileRefused as refusal:
                absent[path] = str(refusal)
            except TooMuch:
                absent[path] = f"together more than {most} bytes"
    except RolloutEnded as over:
        return _after_the_end(paths, over.verdict, over.cause)
    except SandboxUnreachable:
        report = await _word(use_cases, rollout)
        return _after_the_end(paths, report.word or "", report.cause or "")
    return Export(archives, absent)


async def _sealed(reach: Reach, rollout: RolloutId) -> None:
    """Have nothing in the sandbox change any more."""
    sealed = await seal(reach)
    if sealed is None:
        # While a release is rolled out. To refuse would cost the rollouts of a whole step; what is taken instead is
        # what the release before took, which a process of the model could still change.
        _log.warning("sandbox_not_sealed", rollout=rollout.name, reason="its toolserver cannot")
    elif sealed.left:
        # Killed, and stuck in the kernel: they run no code of their own any more. (Without a namespace of its own, on
        # a laptop, also what was too quick to be killed.) A refusal the model could have had for this.
        _log.warning("processes_left_in_sealed_sandbox", rollout=rollout.name, left=sealed.left)


def _after_the_end(paths: Sequence[str], word: str, cause: str) -> Export:
    known = Cause(cause) if cause in set(Cause) else Cause.UNKNOWN
    if word == Word.MASKED:
        raise Masked(cause=known)
    if word == Word.TRAINABLE and known.is_models:
        return nothing(paths, f"the model ended its sandbox: {known}")
    raise ArtifactsMissing(
        cause="the rollout was ended before it was graded" if word else "the sandbox does not answer"
    )


async def _word(use_cases: UseCases, rollout: RolloutId) -> RolloutVerdict:
    """Return how the rollout stands once somebody has said why its sandbox is lost, or after long enough."""
    try:
        async with asyncio.timeout(_WORD.total_seconds()):
            while not (report := await use_cases.verdict(rollout)).word:  # noqa: ASYNC110 - the word comes from elsewhere
                await asyncio.sleep(_LOOK_AGAIN)
            return report
    except TimeoutError:
        return await use_cases.verdict(rollout)
