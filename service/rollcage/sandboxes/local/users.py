"""
Find user ids that nobody else has, where we may choose.

Only root may; for everybody else a sandbox runs as the user who started the
service, and is kept apart from that user's files by other means.
"""

import os
import pwd
import random
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

# Left free by convention (https://systemd.io/UIDS-GIDS): above containers, below the sign bit.
_FIRST: Final = 1_879_048_192
_LAST: Final = 2_147_483_646
# In a container that has only the usual 65,536: above people, below nobody.
_FEW_FIRST: Final = 50_000
_FEW_LAST: Final = 59_999


def free_range(uid_map: str) -> range:
    """Return the ids to choose from, given /proc/self/uid_map; empty when none of them exists here."""
    mapped = [(int(first), int(first) + int(count)) for first, _, count in map(str.split, uid_map.splitlines())]
    for first, last in ((_FIRST, _LAST), (_FEW_FIRST, _FEW_LAST)):
        if any(begin <= first and last < end for begin, end in mapped):
            return range(first, last + 1)
    return range(0)


def pick(ids: range, taken: Collection[int], choose: Callable[[range], int]) -> int | None:
    """Return an id that is not taken; None when there is none to be found."""
    if not ids:
        return None
    # Ids are chosen by chance, so that two services of one machine do not have to agree on them.
    tries = 64
    return next((uid for uid in (choose(ids) for _ in range(tries)) if uid not in taken), None)


def own_user(taken: Collection[int] = ()) -> int | None:
    """Return a user id for one sandbox; None when we may not choose. *taken* have nothing running yet."""
    if os.geteuid() != 0:
        return None
    ids = free_range(Path("/proc/self/uid_map").read_text())
    return pick(ids, _taken() | set(taken), random.SystemRandom().choice)


def _taken() -> set[int]:
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                taken.add(entry.stat().st_uid)
    return taken
