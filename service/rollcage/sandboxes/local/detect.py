"""
Find out by trying what can hold a sandbox in on this machine.

Each tier is tried with the real toolserver in a real cage, best first: what
the kernel, a security module or the container around us forbids shows in no
other way.
"""

import asyncio
import resource
import shutil
import sys
from typing import Final

from rollcage.sandboxes.local import layout, users
from rollcage.sandboxes.local.cages import surround
from rollcage.sandboxes.local.launch import kernel
from rollcage.sandboxes.local.limits import Limits
from rollcage.sandboxes.local.place import Place
from rollcage.sandboxes.local.process import Start, StartFailed, running, tail
from rollcage.sandboxes.local.tiers import BEST_FIRST, Detection, Tier

# A try takes milliseconds; one that hangs is no better than one that fails.
_PATIENCE: Final = 20.0
_SMALL: Final = Limits(memory=1 << 30, workspace=1 << 20, temporary=1 << 20, cpus=1, processes=512)

# Before this version files could be emptied that may not be written (Linux 6.2).
_TRUNCATION_SINCE: Final = 3
# Before this one, processes of the same user could be killed (Linux 6.12).
_SIGNALS_SINCE: Final = 6


async def detect(place: Place) -> Detection:
    """Return the best tier that works, and why the better ones do not; ``Tier.NONE`` if none does."""
    refused: dict[Tier, str] = {}
    for tier in BEST_FIRST:
        refusal = await refusal_of(tier, place)
        if not refusal:
            return Detection(tier, refused)
        refused[tier] = refusal
    return Detection(Tier.NONE, refused)


async def refusal_of(tier: Tier, place: Place) -> str:
    """Return why a tier does not work here; empty if it does."""
    if not sys.platform.startswith("linux"):
        return "this is not Linux"
    if tier is Tier.BUBBLEWRAP and not shutil.which("bwrap"):
        return "bwrap is not on the PATH"
    if tier is Tier.LANDLOCK and (
        refusal := landlock_refusal(kernel.landlock_abi(), own_user=users.own_user() is not None)
    ):
        return refusal
    return await _tried(tier, place)


def landlock_refusal(abi: int, *, own_user: bool) -> str:
    """Decide whether a version of Landlock is enough; say why not."""
    if abi == 0:
        return "the kernel has no Landlock, or it is switched off"
    needed = _TRUNCATION_SINCE if own_user else _SIGNALS_SINCE
    return f"Landlock has version {abi}, {needed} is needed" if abi < needed else ""


async def _tried(tier: Tier, place: Place) -> str:
    key = f"try-{tier}"
    user = users.own_user()
    surroundings = surround(
        tier,
        key,
        host=layout.look_around(),
        place=place,
        arguments=("version",),
        workspace=layout.WORKDIR,
        limits=_SMALL,
        processes=resource.getrlimit(resource.RLIMIT_NPROC)[1],
        user=user,
        cgroup=None,
    )
    log = place.log(key)
    place.prepare(key, user)
    start = Start(
        cage=surroundings.cage,
        bubblewrap=shutil.which("bwrap") or "",
        env=surroundings.env,
        log=log,
        listener=None,
        prepare=lambda _: None,
    )
    try:
        async with asyncio.timeout(_PATIENCE), running(start) as tree:
            code = await tree.wait()
        return "" if code == 0 else _last_line(tail(log)) or f"exit code {code}"
    except StartFailed as failure:
        return _last_line(str(failure))
    except TimeoutError:
        return f"no answer in {_PATIENCE:g} s"
    finally:
        place.clear(key)


def _last_line(text: str) -> str:
    return text.splitlines()[-1] if text else ""
