"""
What every source of sandboxes promises, as tests.

A source's own test file makes a subclass and says how the source is opened,
how one of its sandboxes is made to end by itself, and how patient one has to
be with it. Nothing here knows what the sandboxes are.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, Final

import pytest

from lab.images import reference
from rollcage.core.endings import EndCause
from rollcage.core.environment import Environment
from rollcage.sandboxes.source import Gone, Phase, Sandbox, Seen, Synced

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from rollcage.sandboxes.source import Change, SandboxSource

ENVIRONMENT: Final = Environment.model_validate({"name": "contract", "spec": {"image": reference("sandbox")}})
_ORDER: Final = list(Phase)


class Watch:
    """What one watcher has been told so far, and what it still waits for."""

    def __init__(self, changes: AsyncIterator[Change], patience: float) -> None:
        self._changes = changes
        self._patience = patience
        self.told: list[Change] = []

    async def synced(self) -> list[Sandbox]:
        """Wait for the end of the first account, and return it."""
        return [
            change.sandbox for change in await self._until(lambda c: isinstance(c, Synced)) if isinstance(change, Seen)
        ]

    async def seen(self, name: str, like: Callable[[Sandbox], bool] = lambda _: True) -> Sandbox:
        """Wait until a sandbox is shown that is like this."""
        changes = await self._until(lambda c: isinstance(c, Seen) and c.sandbox.name == name and like(c.sandbox))
        last = changes[-1]
        assert isinstance(last, Seen)
        return last.sandbox

    async def running(self, name: str) -> Sandbox:
        """Wait until a sandbox runs; that it ends instead is an error."""
        sandbox = await self.seen(name, lambda s: s.phase is not Phase.STARTING)
        assert sandbox.phase is Phase.RUNNING, sandbox.ending
        return sandbox

    async def gone(self, name: str) -> Sandbox:
        """Wait until a sandbox is gone, and return the last of it."""
        changes = await self._until(lambda c: isinstance(c, Gone) and c.last.name == name)
        last = changes[-1]
        assert isinstance(last, Gone)
        return last.last

    async def seen_any(self) -> Sandbox:
        """Wait for the next sandbox that is shown."""
        last = (await self._until(lambda c: isinstance(c, Seen)))[-1]
        assert isinstance(last, Seen)
        return last.sandbox

    def of(self, name: str) -> list[Sandbox]:
        """Return everything that was shown of a sandbox."""
        return [change.sandbox for change in self.told if isinstance(change, Seen) and change.sandbox.name == name]

    async def _until(self, enough: Callable[[Change], bool]) -> list[Change]:
        since = len(self.told)
        async with asyncio.timeout(self._patience):
            async for change in self._changes:
                self.told.append(change)
                if enough(change):
                    break
            else:
                pytest.fail("the watch ended")
        return self.told[since:]


class Stage:
    """A source, one watcher, and the sandboxes that a test makes."""

    def __init__(self, source: SandboxSource, watch: Watch) -> None:
        self.source = source
        self.watch = watch

    async def ask(self, name: str = "") -> str:
        """Ask for a sandbox, and return its name."""
        name = name or f"sbx-{uuid.uuid4().hex[:12]}"
        await self.source.create(name, ENVIRONMENT)
        return name

    async def running(self, name: str = "") -> Sandbox:
        """Ask for a sandbox, and wait until it runs."""
        return await self.watch.running(await self.ask(name))

    async def clear(self) -> None:
        """Delete whatever was seen."""
        for change in list(self.watch.told):
            if isinstance(change, Seen):
                await self.source.delete(change.sandbox.name, uid=change.sandbox.uid)


class SourceContract:
    """The promise, test by test."""

    patience: ClassVar[float] = 30.0
    """Seconds for anything at all to happen."""

    @pytest.fixture
    def open_source(self) -> Callable[[], AbstractAsyncContextManager[SandboxSource]]:
        """Say how a source is opened; each has nothing to do with the one before."""
        raise NotImplementedError

    async def end_by_itself(self, source: SandboxSource, sandbox: Sandbox) -> int:
        """Make a running sandbox end without deleting it, and return the exit code that it must be shown with."""
        raise NotImplementedError

    @pytest.fixture
    def stage(
        self, open_source: Callable[[], AbstractAsyncContextManager[SandboxSource]]
    ) -> Callable[[], AbstractAsyncContextManager[Stage]]:
        # Opened in the test itself, not by the fixture: a source's tasks belong to the task that opens it.
        @asynccontextmanager
        async def opened() -> AsyncIterator[Stage]:
            async with open_source() as source, source.observe() as changes:
                stage = Stage(source, Watch(changes, self.patience))
                await stage.watch.synced()
                try:
                    yield stage
                finally:
                    await stage.clear()

        return opened

    async def test_a_sandbox_starts_and_then_runs_at_an_address(self, stage: Opened) -> None:
        async with stage() as s:
            running = await s.running()

            assert s.watch.of(running.name)[0].phase is Phase.STARTING
            assert running.address
            assert running.address.startswith(("http://", "unix:/"))
            assert running.ending is None
            assert (running.environment, running.template) == ("contract", s.source.template(ENVIRONMENT))

    async def test_evidence_about_a_sandbox_can_be_had_while_it_is_there(self, stage: Opened) -> None:
        async with stage() as s:
            running = await s.running()

            assert json.loads(json.dumps(await s.source.evidence(running))).get("node") in {running.node, None}

    async def test_asking_twice_makes_one(self, stage: Opened) -> None:
        async with stage() as s:
            name = await s.ask()
            await s.ask(name)
            running = await s.watch.running(name)
            await s.ask(name)
            # Another one's whole start is long enough for a second one of the first to show.
            await s.running()

            assert {sandbox.uid for sandbox in s.watch.of(name)} == {running.uid}

    async def test_asking_twice_at_the_same_time_makes_one(self, stage: Opened) -> None:
        async with stage() as s:
            name = f"sbx-{uuid.uuid4().hex[:12]}"
            await asyncio.gather(*(s.ask(name) for _ in range(5)))
            await s.watch.running(name)
            await s.running()

            assert len({sandbox.uid for sandbox in s.watch.of(name)}) == 1

    async def test_phases_only_move_forward(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            await self.end_by_itself(s.source, sandbox)
            await s.watch.seen(sandbox.name, lambda seen: seen.phase is Phase.ENDED)

            phases = [_ORDER.index(seen.phase) for seen in s.watch.of(sandbox.name)]
            assert phases == sorted(phases)

    async def test_several_asked_for_at_once_all_run_apart(self, stage: Opened) -> None:
        async with stage() as s:
            names = [await s.ask() for _ in range(4)]
            latest: dict[str, Sandbox] = {}
            while not all(name in latest and latest[name].phase is Phase.RUNNING for name in names):
                seen = await s.watch.seen_any()
                assert seen.phase is not Phase.ENDED, seen.ending
                latest[seen.name] = seen

            assert len({latest[name].uid for name in names}) == len(names)
            assert len({latest[name].address for name in names}) == len(names)

    async def test_a_deleted_sandbox_is_gone_and_its_ending_says_so(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            await s.source.delete(sandbox.name, uid=sandbox.uid)
            last = await s.watch.gone(sandbox.name)

            assert last.uid == sandbox.uid
            assert last.ending
            assert last.ending.cause is EndCause.DELETED

    async def test_a_sandbox_can_be_deleted_while_it_starts(self, stage: Opened) -> None:
        async with stage() as s:
            name = await s.ask()
            starting = await s.watch.seen(name)
            await s.source.delete(name, uid=starting.uid)
            last = await s.watch.gone(name)

            assert last.uid == starting.uid

    async def test_deleting_what_is_gone_is_no_error(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            await s.source.delete(sandbox.name, uid=sandbox.uid)
            await s.source.delete(sandbox.name, uid=sandbox.uid)
            await s.watch.gone(sandbox.name)
            await s.source.delete(sandbox.name, uid=sandbox.uid)
            await s.source.delete("sbx-never-was", uid="none")

    async def test_deleting_under_another_uid_does_nothing(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            await s.source.delete(sandbox.name, uid="00000000-0000-0000-0000-000000000000")
            await s.running()

            assert not any(isinstance(change, Gone) for change in s.watch.told)

    async def test_a_name_that_is_made_again_is_another_sandbox(self, stage: Opened) -> None:
        async with stage() as s:
            first = await s.running()
            await s.source.delete(first.name, uid=first.uid)
            await s.watch.gone(first.name)
            second = await s.running(first.name)
            await s.source.delete(first.name, uid=first.uid)
            await s.running()

            assert second.uid != first.uid
            assert [change.last.uid for change in s.watch.told if isinstance(change, Gone)] == [first.uid]

    async def test_a_watch_begins_with_everything_there_is(self, stage: Opened) -> None:
        async with stage() as s:
            running = await s.running()
            async with s.source.observe() as changes:
                account = await Watch(changes, self.patience).synced()

            assert [sandbox for sandbox in account if sandbox.name == running.name] == [running]

    async def test_two_watchers_are_told_the_same(self, stage: Opened) -> None:
        async with stage() as s, s.source.observe() as changes:
            other = Watch(changes, self.patience)
            await other.synced()
            sandbox = await s.running()
            await s.source.delete(sandbox.name, uid=sandbox.uid)

            last = await s.watch.gone(sandbox.name)
            assert (await other.gone(sandbox.name)) == last
            assert s.watch.of(sandbox.name)[-1] == other.of(sandbox.name)[-1]

    async def test_labels_show_and_add_up(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            await s.source.label(sandbox.name, {"rollcage.dev/run": "r1"})
            await s.source.label(sandbox.name, {"rollcage.dev/state": "claimed"})
            wanted = {"rollcage.dev/run": "r1", "rollcage.dev/state": "claimed"}
            seen = await s.watch.seen(sandbox.name, lambda seen: wanted.items() <= seen.labels.items())

            assert (seen.uid, seen.phase) == (sandbox.uid, Phase.RUNNING)

    async def test_labelling_what_is_gone_is_no_error(self, stage: Opened) -> None:
        async with stage() as s:
            await s.source.label("sbx-never-was", {"rollcage.dev/run": "r1"})

    async def test_a_sandbox_that_ends_by_itself_is_shown_with_its_exit_code(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            code = await self.end_by_itself(s.source, sandbox)
            ended = await s.watch.seen(sandbox.name, lambda seen: seen.phase is Phase.ENDED)

            assert ended.ending
            assert (ended.ending.cause, ended.ending.exit_code) == (EndCause.EXITED, code)

    async def test_a_sandbox_that_ended_is_shown_until_it_is_deleted(self, stage: Opened) -> None:
        async with stage() as s:
            sandbox = await s.running()
            await self.end_by_itself(s.source, sandbox)
            ended = await s.watch.seen(sandbox.name, lambda seen: seen.phase is Phase.ENDED)
            async with s.source.observe() as changes:
                account = await Watch(changes, self.patience).synced()
            await s.source.delete(sandbox.name, uid=sandbox.uid)
            last = await s.watch.gone(sandbox.name)

            assert sandbox.uid in {seen.uid for seen in account}
            assert last.ending == ended.ending

    async def test_closing_leaves_no_task_behind(self, stage: Opened) -> None:
        before = asyncio.all_tasks()
        async with stage() as s:
            await s.running()

        assert asyncio.all_tasks() == before


if TYPE_CHECKING:
    Opened = Callable[[], AbstractAsyncContextManager[Stage]]
