"""What a call comes to while nothing fails: claimed, run once, recorded, answered."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.core.errors import CallConflict, ClaimTimedOut
from rollcage.core.ids import BadId
from rollcage.rollouts.actions import Outcome
from rollcage.rollouts.errors import StillRunning, TooLarge
from rollcage.store.settings import Settings
from support.environments import environment
from support.stage import ENVIRONMENT, address, open_stage
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from redis.asyncio import Redis

    from rollcage.store.server import Server
    from support.stage import Stage


async def test_a_first_call_claims_a_sandbox_and_is_answered(stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    answer = await stage.shell("c1", "echo hello")

    assert (answer.output, answer.outcome, answer.replayed) == ("hello\n", Outcome.OK, False)
    assert answer.facts["exit_code"] == 0


async def test_a_sandbox_on_a_unix_socket_is_reached_as_well(stage: Stage) -> None:
    await stage.offer("sbx-1", address=address(stage.start("sbx-1", unix=True)))

    assert (await stage.shell("c1", "echo hello")).output == "hello\n"


async def test_a_rollout_keeps_its_sandbox(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.sandbox("sbx-2")

    await stage.shell("c1", "echo kept > note")

    assert (await stage.shell("c2", "cat note")).output == "kept\n"
    other = await stage.gateway()
    assert (await other.act(stage.action("c3", "cat note"))).output == "kept\n"


async def test_two_rollouts_never_share_a_sandbox(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.sandbox("sbx-2")

    await asyncio.gather(*(stage.shell("c1", "echo x >> note", rollout=f"r{i}") for i in range(2)))

    assert [(stage.workdir(name) / "note").read_text() for name in ("sbx-1", "sbx-2")] == ["x\n", "x\n"]


async def test_parallel_first_calls_of_a_rollout_share_one_sandbox(stage: Stage) -> None:
    for i in range(3):
        await stage.sandbox(f"sbx-{i}")
    gateways = [stage.use_cases, await stage.gateway()]

    answers = await asyncio.gather(
        *(gateways[i % 2].act(stage.action(f"c{i}", f"echo {i} >> note; pwd")) for i in range(8))
    )

    assert len({answer.output for answer in answers}) == 1
    note = stage.home / answers[0].output.strip() / "note"
    assert sorted(note.read_text().split()) == [str(i) for i in range(8)]


async def test_the_same_call_again_gets_the_first_result_to_the_byte(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first = await stage.shell("c1", "echo x >> note; date +%N")

    again = await stage.shell("c1", "echo x >> note; date +%N")
    elsewhere = await (await stage.gateway()).act(stage.action("c1", "echo x >> note; date +%N"))

    assert again.result == elsewhere.result == first.result
    assert again.replayed
    assert elsewhere.replayed
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_another_spelling_of_the_same_arguments_is_the_same_call(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    first = await stage.shell("c1", arguments='{"command": "date +%N", "timeout_ms": 5000}')

    again = await stage.shell("c1", arguments={"timeout_ms": 5000, "command": "date +%N"})

    assert again.result == first.result


async def test_the_same_call_id_with_other_arguments_is_a_conflict(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1", "echo x >> note")

    with pytest.raises(CallConflict):
        await stage.shell("c1", "echo y >> note")
    with pytest.raises(CallConflict):
        await (await stage.gateway()).act(stage.action("c1", tool="list", arguments={}))
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_a_call_that_runs_at_another_gateway_is_waited_for_and_not_sent(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    other = await stage.gateway()
    command = "echo x >> note; while [ ! -e go ]; do sleep 0.01; done; date +%N"
    first = asyncio.create_task(other.act(stage.action("c1", command)))
    await eventually(lambda: _exists(stage, "note"))

    second = asyncio.create_task(stage.shell("c1", command))
    # A repeat that the toolserver is asked for by id counts as one there, before it is answered.
    await asyncio.wait([second], timeout=0.2)
    (stage.workdir("sbx-1") / "go").touch()

    assert (await first).result == (await second).result
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


@pytest.mark.parametrize(
    ("tool", "arguments", "says"),
    [
        pytest.param("browse", "{}", "browse", id="a tool that the environment does not have"),
        pytest.param("shell", '{"comand": "ls"}', "comand", id="a wrong argument"),
        pytest.param("shell", '{"command": "ls', "must be an object", id="arguments that are no JSON"),
        pytest.param("shell", '{"command": "\ud800"}', "must be an object", id="half a letter"),
        pytest.param("shell", {"command": "\ud800"}, "must be an object", id="half a letter, parsed"),
        pytest.param("sh\ud800ll", "{}", "sh?ll", id="half a letter in the tool's name"),
        pytest.param("shell", '{"command": NaN}', "must be an object", id="a number that is none"),
        pytest.param("shell", "[" * 5000 + "]" * 5000, "must be an object", id="deeper than anybody reads"),
        pytest.param("shell", "[1]", "must be an object", id="arguments that are no object"),
    ],
)
async def test_what_the_model_spells_wrong_is_told_to_it_and_recorded(
    stage: Stage, tool: str, arguments: Any, says: str
) -> None:
    await stage.sandbox("sbx-1")

    answer = await stage.shell("c1", tool=tool, arguments=arguments)

    assert answer.outcome is Outcome.MALFORMED
    assert says in answer.output
    assert await stage.steps() == [("c1", "malformed", answer.output)]


async def test_a_command_over_its_time_is_a_tool_result(stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    answer = await stage.shell("c1", arguments={"command": "sleep 60", "timeout_ms": 100})

    assert answer.outcome is Outcome.TIMED_OUT
    assert await stage.verdict() == (None, None, None)


async def test_what_the_model_saw_is_recorded_before_it_sees_it(stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    await stage.shell("c1", "echo one")
    await stage.shell("c2", "echo two; exit 3")

    assert await stage.steps() == [("c1", "ok", "one\n"), ("c2", "failed", "two\n[exit code 3]")]


async def test_without_a_sandbox_a_call_waits_and_then_is_refused(stage: Stage) -> None:
    with pytest.raises(ClaimTimedOut) as refused:
        await stage.shell("c1", within=timedelta(seconds=1.2))

    assert refused.value.retry_after > 0


async def test_a_call_that_waits_gets_the_next_sandbox(stage: Stage) -> None:
    waiting = asyncio.create_task(stage.shell("c1", "echo hello"))
    await eventually(lambda: _waiting(stage, 1))

    await stage.sandbox("sbx-1")

    assert (await waiting).output == "hello\n"


async def test_calls_beyond_the_budget_are_refused_in_words(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    stage.environment = environment(ENVIRONMENT, budgets={"calls": 2, "wallSeconds": 1800, "lifetimeSeconds": 3600})
    for i in range(2):
        await stage.shell(f"c{i}", "echo x >> note")

    beyond = await stage.shell("c2", "echo x >> note")

    assert (beyond.outcome, beyond.output) == (Outcome.REFUSED, "[not run: all 2 calls are used up]")
    assert (await stage.shell("c2", "echo x >> note")).result == beyond.result
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\nx\n"


async def test_calls_beyond_the_rollouts_time_are_refused_in_words(
    redis: Redis, server: Server, binary: Path, tmp_path: Path
) -> None:
    await redis.ping()
    now = [1_800_000_000_000]
    async with AsyncExitStack() as stack:
        stage = await open_stage(stack, Settings(server.url), binary=binary, home=tmp_path, clock=lambda: now[0])
        await stage.sandbox("sbx-1")
        wall = stage.environment.spec.budgets.wall_seconds
        await stage.shell("c1")
        # Only the record's clock is moved: a gateway that has not seen the rollout yet learns from it how late it is.
        gateway = await stage.gateway()
        now[0] += 1000 * wall
        assert (await gateway.act(stage.action("c2"))).outcome is Outcome.OK

        now[0] += 1000
        late = await gateway.act(stage.action("c3", "echo x >> note"))

        assert (late.outcome, late.output) == (Outcome.REFUSED, f"[not run: the time of {wall} s is over]")
        assert not (stage.workdir("sbx-1") / "note").exists()


async def test_too_many_calls_at_once_are_told_to_the_model_once_waiting_does_not_help(stage: Stage) -> None:
    await stage.sandbox("sbx-1", limits={"concurrent_calls": 1, "waiting_calls": 0})
    long = asyncio.create_task(stage.shell("c1", "touch on; while [ ! -e go ]; do sleep 0.01; done"))
    await eventually(lambda: _exists(stage, "on"))

    answer = await stage.shell("c2", "echo x >> note")

    assert answer.outcome is Outcome.REFUSED
    assert "too many calls at once" in answer.output
    (stage.workdir("sbx-1") / "go").touch()
    assert (await long).outcome is Outcome.OK
    assert not (stage.workdir("sbx-1") / "note").exists()


async def test_a_call_that_outlasts_its_caller_is_found_again(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    command = "echo x >> note; while [ ! -e go ]; do sleep 0.01; done; echo done"

    with pytest.raises(StillRunning):
        await stage.shell("c1", command, within=timedelta(seconds=1.5))
    (stage.workdir("sbx-1") / "go").touch()

    assert (await stage.shell("c1", command)).output == "done\n"
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"


async def test_a_caller_that_goes_away_leaves_a_call_whose_result_is_recorded(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    call = asyncio.create_task(stage.shell("c1", "touch on; while [ ! -e go ]; do sleep 0.01; done; echo done"))
    await eventually(lambda: _exists(stage, "on"))

    call.cancel()
    (stage.workdir("sbx-1") / "go").touch()

    await eventually(lambda: _recorded(stage, ("c1", "ok", "done\n")))


async def test_bad_ids_and_huge_arguments_change_nothing(stage: Stage) -> None:
    await stage.sandbox("sbx-1")

    with pytest.raises(BadId):
        await stage.shell("../c1")
    with pytest.raises(TooLarge):
        await stage.shell("c1", "x" * (3 << 20))

    assert (await stage.store.pools.counts(ENVIRONMENT)).claimed == 0


async def _exists(stage: Stage, name: str) -> bool:
    return (stage.workdir("sbx-1") / name).exists()


async def _recorded(stage: Stage, step: tuple[str, str, str]) -> bool:
    return step in await stage.steps()


async def _waiting(stage: Stage, count: int) -> bool:
    return (await stage.store.pools.counts(ENVIRONMENT)).waiting == count
