"""
Start one sandbox with everything that it needs, and leave nothing of it behind.
"""

import asyncio
import logging
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rollcage.sandboxes.local import layout, limits, users
from rollcage.sandboxes.local.cages import Surroundings, surround
from rollcage.sandboxes.local.cgroups import Cgroup, Cgroups
from rollcage.sandboxes.local.place import Place
from rollcage.sandboxes.local.process import Start, StartFailed, Tree, running, tail
from rollcage.sandboxes.local.recipe import Recipe, config_at
from rollcage.sandboxes.local.tiers import Tier

log = logging.getLogger(__name__)

# As many gateways and controllers may call at once as the toolserver takes.
_BACKLOG: Final = 256
# The kernel empties a cgroup a moment after its last process was reaped.
_LOOK_AGAIN: Final = 0.01
_LOOKS: Final = 200


@dataclass(frozen=True, slots=True)
class Started:
    """A sandbox that was started."""

    tree: Tree
    socket: Path
    log: Path
    cgroup: Cgroup | None

    def oom_kills(self) -> int:
        """Return how often the kernel killed for want of memory; 0 where nobody counts."""
        return self.cgroup.oom_kills() if self.cgroup else 0

    def last_words(self) -> str:
        """Return the end of the toolserver's log."""
        return tail(self.log)


class Starter:
    """Starts sandboxes in one tier."""

    def __init__(self, tier: Tier, place: Place, cgroups: Cgroups | None, keys: str) -> None:
        self.tier = tier
        self._place = place
        self._cgroups = cgroups
        self._keys = keys
        self._host = layout.look_around()
        self._bubblewrap = shutil.which("bwrap") or ""
        self._users: set[int] = set()

    @asynccontextmanager
    async def start(self, name: str, *, key: str, made: Recipe) -> AsyncIterator[Started]:
        """Run a sandbox; *key* names what it has on disk. When the block is left it is dead and gone."""
        if self.tier is Tier.NONE:
            log.warning("sandbox_not_isolated", extra={"sandbox": name, "tier": self.tier})
        async with AsyncExitStack() as undo:
            try:
                start, cgroup = await self._prepared(name, key, made, undo)
            except OSError as error:
                raise StartFailed(f"cannot prepare it: {error}") from error
            tree = await undo.enter_async_context(running(start))
            # Ours must not stay open: with it, connecting to a dead sandbox would wait for ever.
            if start.listener:
                start.listener.close()
            yield Started(tree, self._place.socket(key), start.log, cgroup)

    async def _prepared(self, name: str, key: str, made: Recipe, undo: AsyncExitStack) -> tuple[Start, Cgroup | None]:
        user = users.own_user(self._users)
        if user is not None:
            self._users.add(user)
            undo.callback(self._users.discard, user)
        cgroup = self._cgroups.make(key, made.limits) if self._cgroups else None
        if cgroup:
            undo.push_async_callback(_removed, cgroup)
        undo.push_async_callback(asyncio.to_thread, self._place.clear, key)
        self._place.prepare(key, user)
        surroundings = surround(
            self.tier,
            key,
            host=self._host,
            place=self._place,
            arguments=("serve",),
            workspace=made.workspace,
            limits=made.limits,
            processes=self._processes(made, user),
            user=user,
            cgroup=cgroup,
        )
        listener = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        listener.bind(str(self._place.socket(key)))
        listener.listen(_BACKLOG)
        return Start(
            cage=surroundings.cage,
            bubblewrap=self._bubblewrap,
            env=self._env(name, made, surroundings, listener),
            log=self._place.log(key),
            listener=listener,
            prepare=cgroup.add if cgroup else lambda _: None,
        ), cgroup

    def _env(self, name: str, made: Recipe, surroundings: Surroundings, listener: socket.socket) -> dict[str, str]:
        return {
            **surroundings.env,
            "ROLLCAGE_SANDBOX": name,
            "ROLLCAGE_KEYS": self._keys,
            "ROLLCAGE_LISTEN": f"fd:{listener.fileno()}",
            "ROLLCAGE_CONFIG": config_at(made, surroundings.workspace),
        }

    def _processes(self, made: Recipe, user: int | None) -> int:
        uid = os.geteuid() if user is None else user
        return limits.process_limit(
            made.limits,
            alone=user is not None,
            user_namespace=self.tier in {Tier.BUBBLEWRAP, Tier.NAMESPACES},
            kernel=limits.release(),
            others=lambda: limits.processes_of(uid),
        )


async def _removed(cgroup: Cgroup) -> None:
    for _ in range(_LOOKS):
        if cgroup.remove():
            return
        await asyncio.sleep(_LOOK_AGAIN)
    log.warning("cgroup_left", extra={"cgroup": str(next(iter(cgroup.directories.values())))})
