"""Which calls are answered without a task of their own, and that every other one is answered all the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.core.errors import CallConflict, RolloutEnded
from rollcage.core.ids import RolloutId
from rollcage.rollouts import beginning
from rollcage.rollouts.actions import Outcome
from rollcage.rollouts.arguments import MAX_BYTES
from rollcage.rollouts.errors import Masked, TooLarge
from rollcage.rollouts.routes import Routes
from support.askers import Heard
from support.stage import ENVIRONMENT, RUN, TENANT
from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from redis.asyncio import Redis

    from rollcage.rollouts.actions import Answer
    from support.stage import Stage

pytestmark = pytest.mark.parametrize("stage", ["awaited"], indirect=True)

ROLLOUT = RolloutId(TENANT, "r1")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every command count as short, however busy the machine is."""
    monkeypatch.setattr(beginning, "_MARKED_AFTER", 60.0)


async def started(stage: Stage, call: str, command: str | None = None, **changes: Any) -> Heard:
    """Start a call, wait for what comes of it, and return who heard it."""
    asker = Heard()
    stage.use_cases.start(stage.action(call, command, **changes), asker)
    await asyncio.wait({asker.answer})
    return asker


async def test_every_call_but_a_rollouts_first_is_plain(stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    heard = [await started(stage, f"c{number}", f"echo {number}") for number in range(4)]

    assert [one.plainly for one in heard] == [False, True, True, True]
    assert [one.answer.result().output for one in heard] == ["0\n", "1\n", "2\n", "3\n"]
    assert await stage.steps() == [(f"c{number}", "ok", f"{number}\n") for number in range(4)]


async def test_a_command_that_fails_is_plain_too(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")

    failed = await started(stage, "c2", "exit 3")

    assert (failed.plainly, failed.answer.result().outcome) == (True, Outcome.FAILED)


async def test_an_answer_is_in_the_record_before_it_is_given(stage: Stage, redis: Redis) -> None:
    class Looking(Heard):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []
            self.ready = asyncio.Event()

        def known(self, answer: Answer) -> None:
            super().known(answer)
            self.seen.append("known")
            self.ready.set()

        def recorded(self) -> None:
            self.seen.append("recorded")
            super().recorded()

    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    asker = Looking()
    # Redis takes its time: until it has answered, nothing is given.
    await redis.client_pause(300)
    stage.use_cases.start(stage.action("c2", "echo x"), asker)
    await asker.ready.wait()
    assert asker.seen == ["known"]
    assert not asker.answer.done()

    await asker.answer

    assert asker.seen == ["known", "recorded"]
    assert (await stage.steps())[-1] == ("c2", "ok", "x\n")


async def test_a_call_that_takes_long_is_marked_meanwhile_and_goes_on_otherwise(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beginning, "_MARKED_AFTER", 0.01)
    await stage.sandbox("sbx-1")
    await stage.shell("c1")

    slow = await started(stage, "c2", "sleep 0.1; echo late")

    assert (slow.plainly, slow.answer.result().output) == (False, "late\n")
    assert (await stage.steps())[-1] == ("c2", "ok", "late\n")


async def test_a_repeated_call_gets_the_recorded_answer_otherwise(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    first = await started(stage, "c2", "echo x >> note; cat note")

    again = await started(stage, "c2", "echo x >> note; cat note")

    assert (first.plainly, again.plainly) == (True, False)
    assert (again.answer.result().result, again.answer.result().replayed) == (first.answer.result().result, True)
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_what_is_refused_is_raised_as_ever(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo 1")
    conflict = await started(stage, "c1", "echo 2")
    too_large = await started(stage, "c2", "x" * MAX_BYTES)
    await stage.use_cases.finish(ROLLOUT, run=RUN, environment=ENVIRONMENT)
    ended = await started(stage, "c3")

    errors = [type(heard.answer.exception()) for heard in (conflict, too_large, ended)]

    assert errors == [CallConflict, TooLarge, RolloutEnded]


async def test_an_asker_that_cannot_take_the_answer_is_told_once_more_where_it_may_fail(stage: Stage) -> None:
    class Choking(Heard):
        def known(self, answer: Answer) -> None:
            raise ValueError(f"no letters for {answer.output}")

        def recorded(self) -> None:
            raise AssertionError("there is nothing to give")

    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    asker = Choking()

    stage.use_cases.start(stage.action("c2", "echo x >> note; cat note"), asker)

    assert (await asker.answer).output == "x\n"
    assert (await stage.steps())[-1] == ("c2", "ok", "x\n")


async def test_a_fault_before_anything_is_sent_is_raised_where_it_is_told(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bytes:
        raise RuntimeError("no key to sign with")

    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    monkeypatch.setattr(Routes, "head", broken)

    faulty = await started(stage, "c2", "echo x >> note")

    assert isinstance(faulty.answer.exception(), RuntimeError)
    assert not (stage.workdir("sbx-1") / "note").exists()


async def test_a_sandbox_that_dies_meanwhile_masks_the_rollout(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1")
    asker = Heard()
    stage.use_cases.start(stage.action("c2", "sleep 30"), asker)
    server.process.kill()

    with pytest.raises(Masked):
        await asker.answer


async def test_without_redis_a_call_is_answered_and_recorded_later(stage: Stage, redis: Redis) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    # Longer than a gateway waits for it.
    await redis.client_pause(2500)

    away = await started(stage, "c2", "echo x")

    async def recorded() -> bool:
        return (await stage.steps())[-1] == ("c2", "ok", "x\n")

    assert (away.plainly, away.answer.result().output) == (False, "x\n")
    await eventually(recorded)


async def test_calls_at_once_are_each_answered_once(stage: Stage) -> None:
    class Once(Heard):
        def __init__(self) -> None:
            super().__init__()
            self.times = 0

        def recorded(self) -> None:
            self.times += 1
            super().recorded()

        def otherwise(self, answer: Coroutine[Any, Any, Answer]) -> None:
            self.times += 1
            super().otherwise(answer)

    await stage.sandbox("sbx-1")
    await stage.shell("c0")
    for turn in range(10):
        askers = [Once() for _ in range(6)]
        for number, asker in enumerate(askers):
            # Every call twice: the second finds the first. More connections than eight a sandbox takes only from afar.
            call = f"c{turn}-{number // 2}"
            stage.use_cases.start(stage.action(call, f"echo {call} >> note"), asker)
        await asyncio.wait({asker.answer for asker in askers})
        assert [(asker.times, asker.answer.result().outcome) for asker in askers] == [(1, Outcome.OK)] * 6

    lines = (stage.workdir("sbx-1") / "note").read_text().split()
    assert sorted(lines) == [f"c{turn}-{number}" for turn in range(10) for number in range(3)]
