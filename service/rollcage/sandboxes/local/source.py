"""
Local process trees as a source of sandboxes.

Each sandbox has one task that lives as long as it does: starts it, waits for
it to be ready, hears of its end, and removes every trace when it is deleted.
"""

import asyncio
import logging
import os
import uuid
from asyncio import Task, TaskGroup
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rollcage.core.endings import Ending
from rollcage.core.environment import Environment, template_fingerprint
from rollcage.core.ids import sandbox_name
from rollcage.core.verdict_facts import Shield
from rollcage.sandboxes.board import Board
from rollcage.sandboxes.local import cgroups, endings, probe
from rollcage.sandboxes.local.cgroups import Cgroups, NoCgroup
from rollcage.sandboxes.local.detect import detect
from rollcage.sandboxes.local.place import Place, place
from rollcage.sandboxes.local.process import StartFailed
from rollcage.sandboxes.local.recipe import Recipe, recipe
from rollcage.sandboxes.local.starting import Starter
from rollcage.sandboxes.local.tiers import Detection, NoIsolation, Tier
from rollcage.sandboxes.source import Change, Phase, Sandbox

log = logging.getLogger(__name__)

# Starting is work for the processor: a few at once keep it busy, more make every one of them late.
STARTS_PER_CPU: Final = 2
# A hundred times what it takes; one that hangs must not keep its place from others.
_START_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How local sandboxes are made."""

    toolserver: Path
    """The program; sandboxes run a copy."""
    keys: str
    """The public keys whose signatures sandboxes accept, as ``ROLLCAGE_KEYS`` has them."""
    directory: Path | None = None
    """Where to make the directory for sockets and logs; the system's temporary directory unless given."""
    detection: Detection | None = None
    """What was found to hold sandboxes in; found out at the start unless given."""
    unsafe_no_isolation: bool = False
    """Run sandboxes as plain processes where nothing can hold them in."""
    processes: int = 512
    """How many processes and threads a sandbox may have; its toolserver takes some forty."""
    concurrent_starts: int = STARTS_PER_CPU * (os.cpu_count() or 1)


class LocalSource:
    """The sandboxes of one service on this machine."""

    def __init__(
        self,
        starter: Starter,
        detection: Detection,
        tasks: TaskGroup,
        now: Callable[[], datetime],
        settings: LocalSettings,
    ) -> None:
        self.detection = detection
        self._starter = starter
        self._tasks = tasks
        self._now = now
        self._starts = asyncio.Semaphore(settings.concurrent_starts)
        self._processes = settings.processes
        self._board = Board()
        self._lives: dict[str, Task[None]] = {}
        self._deleting: set[str] = set()
        self._first: dict[str, int] = {}

    def template(self, environment: Environment) -> str:
        """Return the fingerprint of the recipe; everything else is this process's own and ends with it."""
        return template_fingerprint(environment)

    def shield(self, environment: Environment) -> Shield:
        """Only a namespace of its own makes a toolserver PID 1."""
        del environment
        return Shield.KERNEL if self.detection.tier in {Tier.BUBBLEWRAP, Tier.NAMESPACES} else Shield.NOTHING

    async def create(self, name: str, environment: Environment) -> None:
        """Start a sandbox; one that was asked for before is left as it is."""
        if sandbox_name(name) in self._lives:
            return
        made = recipe(environment, processes=self._processes)
        self._board.show(
            Sandbox(
                name=name,
                uid=uuid.uuid4().hex,
                environment=made.environment,
                template=made.template,
                phase=Phase.STARTING,
                created=self._now(),
                node=os.uname().nodename,
                image=f"host:{self.detection.tier}",
            )
        )
        life = self._tasks.create_task(self._live(name, made))
        self._lives[name] = life
        # Not at the end of the life itself: one that is cancelled at once never begins.
        life.add_done_callback(lambda _: self._bury(name))

    async def delete(self, name: str, *, uid: str) -> None:
        """Kill a sandbox and remove it; returns when nothing of it is left."""
        shown = self._board.get(name)
        if shown is None or shown.uid != uid:
            return
        life = self._lives[name]
        if name not in self._deleting:
            self._deleting.add(name)
            life.cancel()
        await asyncio.wait({life})

    async def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Add labels, which live as long as this process."""
        shown = self._board.get(name)
        if shown is not None:
            self._board.show(replace(shown, labels={**shown.labels, **labels}))

    async def evidence(self, sandbox: Sandbox) -> Mapping[str, Any]:
        """Name the machine; what else there is to know stands in the ending."""
        return {"tier": str(self.detection.tier), "node": sandbox.node}

    def process(self, name: str) -> int | None:
        """Return the first process of a sandbox that runs, by this machine's numbers; its end is the sandbox's."""
        return self._first.get(name)

    def observe(self) -> AbstractAsyncContextManager[AsyncIterator[Change]]:
        """Watch all sandboxes of this source."""
        return self._board.observe()

    async def close(self) -> None:
        """Remove every sandbox, and end every watch."""
        async with TaskGroup() as closing:
            for sandbox in self._board:
                closing.create_task(self.delete(sandbox.name, uid=sandbox.uid))
        self._board.close()

    async def _live(self, name: str, made: Recipe) -> None:
        ending = await self._run(name, made)
        log.info("sandbox_ended", extra={"sandbox": name, "cause": ending.cause, "exit_code": ending.exit_code})
        self._change(name, phase=Phase.ENDED, ending=ending)
        # Shown until it is deleted, which cancels this.
        await asyncio.Event().wait()

    def _bury(self, name: str) -> None:
        shown = self._shown(name)
        del self._lives[name]
        self._deleting.discard(name)
        self._board.take_down(replace(shown, phase=Phase.ENDED, ending=shown.ending or endings.deleted()))

    async def _run(self, name: str, made: Recipe) -> Ending:
        async with AsyncExitStack() as stack:
            try:
                async with self._starts, asyncio.timeout(_START_SECONDS):
                    started = await stack.enter_async_context(
                        self._starter.start(name, key=self._shown(name).uid[:16], made=made)
                    )
                    self._first[name] = started.tree.pid
                    stack.callback(self._first.pop, name)
                    ended = self._tasks.create_task(started.tree.wait())
                    answered = await _before(ended, probe.answering(started.socket))
            except StartFailed as failure:
                return endings.not_started(str(failure))
            except TimeoutError:
                return endings.not_started(f"its toolserver did not answer in {_START_SECONDS:g} s")
            try:
                async with asyncio.timeout(made.lifetime):
                    if answered:
                        # Whether its set-up is done, or has failed, is for the controller to ask, as of a pod.
                        self._change(name, address=f"unix:{started.socket}", phase=Phase.RUNNING)
                    code = await asyncio.shield(ended)
            except TimeoutError:
                return endings.outlived(made.lifetime)
            return endings.exited(code, answered=answered, oom_kills=started.oom_kills(), log=started.last_words())

    def _shown(self, name: str) -> Sandbox:
        shown = self._board.get(name)
        assert shown is not None, name  # noqa: S101 - only its own life takes it down
        return shown

    def _change(self, name: str, **changes: object) -> None:
        self._board.show(replace(self._shown(name), **changes))  # type: ignore[arg-type]


@asynccontextmanager
async def local_source(
    settings: LocalSettings, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[LocalSource]:
    """Open a source; when the block is left, all its sandboxes are dead and their files removed."""
    failure: Exception | None = None
    async with AsyncExitStack() as stack:
        where = stack.enter_context(place(settings.toolserver, parent=settings.directory))
        detection = settings.detection or await detect(where)
        if detection.tier is Tier.NONE and not settings.unsafe_no_isolation:
            raise NoIsolation(detection.refused)
        log.info("isolation_found", extra={"tier": detection.tier, "refused": dict(detection.refused)})
        limited = _cgroups(where)
        if limited:
            stack.callback(limited.remove)
        starter = Starter(detection.tier, where, limited, settings.keys)
        tasks = await stack.enter_async_context(TaskGroup())
        source = LocalSource(starter, detection, tasks, now, settings)
        try:
            yield source
        except Exception as error:  # noqa: BLE001 - raised again below
            # A task group would wrap it, though it is none of its tasks' doing.
            failure = error
        finally:
            await source.close()
    if failure:
        raise failure


async def _before(ended: Task[int], work: Coroutine[None, None, None]) -> bool:
    """Wait for some work, and tell whether it was done before the sandbox ended."""
    doing = asyncio.ensure_future(work)
    try:
        await asyncio.wait({doing, ended}, return_when=asyncio.FIRST_COMPLETED)
        return doing.done()
    finally:
        doing.cancel()


def _cgroups(where: Place) -> Cgroups | None:
    try:
        found = cgroups.find(where.directory.name)
    except NoCgroup as refusal:
        log.info("cgroups_refused", extra={"reason": str(refusal)})
        return None
    where.remember(found)
    return found
