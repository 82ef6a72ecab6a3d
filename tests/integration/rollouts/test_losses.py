"""What a call comes to when sandboxes die, lines are cut and routes lie: never a second run, never a false zero."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from rollcage.core.endings import EndCause, Ending
from rollcage.core.verdict_words import Cause
from rollcage.rollouts.actions import Outcome, prepare
from rollcage.rollouts.errors import Masked, NoSandbox
from rollcage.rollouts.usecases import open_use_cases
from rollcage.store.claims import Claim
from rollcage.store.store import open_store
from support.frail_line import frail_line
from support.stage import BRISK, address
from support.toolserver import SIGNER
from support.waiting import eventually, until

if TYPE_CHECKING:
    from rollcage.rollouts.actions import Prepared
    from support.local_toolserver import LocalToolserver
    from support.stage import Stage

OUT_OF_MEMORY = Ending(EndCause.OUT_OF_MEMORY, 137)
# It ends by itself where its toolserver was killed and nobody is left to end it.
WAITING = "echo x >> note; touch on; for _ in $(seq 3000); do [ -e go ] && break; sleep 0.01; done; echo done"


async def test_a_sandbox_found_dead_before_the_first_call_is_exchanged_and_nobody_notices(stage: Stage) -> None:
    kill(await stage.sandbox("sbx-1"))
    first = asyncio.create_task(stage.shell("c1", "echo hello"))
    await eventually(lambda: spent(stage, "sbx-1"))

    await stage.sandbox("sbx-2")

    assert (await first).output == "hello\n"
    assert await stage.verdict() == (None, None, None)


async def test_parallel_first_calls_are_moved_together(stage: Stage) -> None:
    kill(await stage.sandbox("sbx-1"))
    calls = [asyncio.create_task(stage.shell(f"c{i}", "echo x >> note; pwd")) for i in range(5)]
    await eventually(lambda: spent(stage, "sbx-1"))

    await stage.sandbox("sbx-2")
    answers = await asyncio.gather(*calls)

    assert {answer.output.strip() for answer in answers} == {str(stage.workdir("sbx-2"))}
    assert runs(stage, "sbx-2") == 5


async def test_calls_that_find_their_sandbox_dead_one_after_the_other_are_moved_with_the_last(stage: Stage) -> None:
    kill(await stage.sandbox("sbx-1"))
    other = await marked_elsewhere(stage, "c1")
    call = asyncio.create_task(stage.shell("c2", "pwd"))
    # Longer than it needs to find nobody there time and again, shorter than it waits.
    await asyncio.wait([call], timeout=0.5)
    assert not call.done()

    await stage.sandbox("sbx-2")
    await stage.store.calls.retract(other.key, other.call.id, attempt=other.call.attempt)

    assert (await call).output.strip() == str(stage.workdir("sbx-2"))
    assert await stage.verdict() == (None, None, None)


async def test_a_call_beside_one_that_may_have_run_stays_with_it_in_a_dead_sandbox(stage: Stage) -> None:
    kill(await stage.sandbox("sbx-1"))
    await marked_elsewhere(stage, "c1")
    await stage.sandbox("sbx-2")

    with pytest.raises(Masked):
        await stage.shell("c2", "echo x >> note")

    assert await stage.verdict() == ("masked", "unreachable", "gateway")
    assert not (stage.workdir("sbx-2") / "note").exists()


async def test_a_rollout_that_finds_every_sandbox_dead_is_refused_and_keeps_its_chance(stage: Stage) -> None:
    for i in range(7):
        kill(await stage.sandbox(f"sbx-{i}"))

    with pytest.raises(NoSandbox):
        await stage.shell("c1", "echo hello")

    assert await stage.verdict() == (None, None, None)
    assert await stage.steps() == []


async def test_a_gateway_that_is_cut_off_does_not_spend_the_pool(stage: Stage) -> None:
    dead = stage.start("dead")
    where = address(dead)
    kill(dead)
    for i in range(30):
        await stage.offer(f"sbx-{i}", address=where)

    for i in range(10):
        with pytest.raises(NoSandbox):
            await stage.shell("c1", rollout=f"r{i}")

    assert len(await stage.store.pools.spent(stage.environment.name)) <= 8


async def test_a_gateway_that_was_cut_off_goes_on_once_it_reaches_somebody(stage: Stage) -> None:
    dead = stage.start("dead")
    where = address(dead)
    kill(dead)
    for i in range(12):
        await stage.offer(f"sbx-{i}", address=where)
    for i in range(4):
        with pytest.raises(NoSandbox):
            await stage.shell("c1", rollout=f"r{i}")
    while (await stage.store.pools.counts(stage.environment.name)).ready:
        with pytest.raises(NoSandbox):
            await stage.shell("c1", rollout=f"more-{time.monotonic_ns()}")

    await stage.sandbox("alive")
    await stage.sandbox("alive-too")

    assert (await stage.shell("c1", rollout="new")).outcome is Outcome.OK
    assert (await stage.shell("c1", rollout="r3")).outcome is Outcome.OK


async def test_a_sandbox_that_the_model_killed_is_told_to_it_and_trained_on(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    call = asyncio.create_task(stage.shell("c1", WAITING))
    await eventually(lambda: exists(stage, "on"))

    kill(server)
    await stage.says(OUT_OF_MEMORY)
    answer = await call

    assert answer.ended
    assert answer.outcome is Outcome.REFUSED
    assert answer.output == "[the sandbox has ended: it used more memory than it may; nothing further can be run]"
    assert await stage.verdict() == ("trainable", "out_of_memory", "controller")
    assert await stage.steps() == [("c1", "refused", answer.output)]
    for again in (await stage.shell("c1", WAITING), await stage.shell("c2")):
        assert (again.output, again.ended) == (answer.output, True)


async def test_the_controllers_word_is_waited_for_so_that_the_model_is_not_excused(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1")
    kill(server)

    call = asyncio.create_task(stage.shell("c2"))
    # Longer than the gateway needs to find nobody there, shorter than it waits.
    await asyncio.wait([call], timeout=0.5)
    assert not call.done()
    await stage.says(OUT_OF_MEMORY)

    assert (await call).ended
    assert await stage.verdict() == ("trainable", "out_of_memory", "controller")


async def test_a_sandbox_lost_while_a_call_ran_masks_its_rollout_when_nobody_knows_why(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    call = asyncio.create_task(stage.shell("c1", WAITING))
    await eventually(lambda: exists(stage, "on"))
    kill(server)

    with pytest.raises(Masked) as masked:
        await call

    assert masked.value.cause is Cause.ANSWER_LOST
    assert await stage.verdict() == ("masked", "answer_lost", "gateway")
    await stage.sandbox("sbx-2")
    for again in ("c1", "c2"):
        with pytest.raises(Masked):
            await stage.shell(again, WAITING)
    assert not (stage.workdir("sbx-2") / "note").exists()


async def test_a_sandbox_lost_between_calls_masks_its_rollout_when_nobody_knows_why(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    await stage.shell("c1")
    await stage.sandbox("sbx-2")
    kill(server)

    with pytest.raises(Masked):
        await stage.shell("c2", "echo x >> note")

    word, cause, by = await stage.verdict()
    # Whether the gateway had noticed that its connection is dead when it wrote to it.
    assert (word, by) == ("masked", "gateway")
    assert cause in {"unreachable", "answer_lost"}
    assert not (stage.workdir("sbx-2") / "note").exists()


async def test_a_call_interrupted_from_outside_masks_its_rollout(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    call = asyncio.create_task(stage.shell("c1", WAITING))
    await eventually(lambda: exists(stage, "on"))
    await asyncio.to_thread(server.stop)

    with pytest.raises(Masked):
        await call

    word, cause, _ = await stage.verdict()
    assert (word, cause) == ("masked", "stopped_from_outside")


async def test_a_call_interrupted_because_its_own_disk_was_full_is_the_models(stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    call = asyncio.create_task(stage.shell("c1", WAITING))
    await eventually(lambda: exists(stage, "on"))
    await asyncio.to_thread(server.stop)
    await stage.says(Ending(EndCause.OWN_STORAGE_LIMIT, 143))

    assert (await call).ended
    assert await stage.verdict() == ("trainable", "out_of_storage", "controller")


async def test_a_result_that_comes_after_its_rollout_was_masked_is_not_given_away(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    call = asyncio.create_task(stage.shell("c1", WAITING))
    await eventually(lambda: exists(stage, "on"))
    await stage.says(Ending(EndCause.NODE_LOST))
    (stage.workdir("sbx-1") / "go").touch()

    with pytest.raises(Masked):
        await call

    assert await stage.steps() == [("c1", "ok", "done\n")]


async def test_a_line_cut_while_a_call_runs_costs_nothing_but_time(stage: Stage) -> None:
    async with frail_line(stage) as line:
        call = asyncio.create_task(stage.shell("c1", WAITING))
        await eventually(lambda: exists(stage, "on"))

        await line.cut()
        line.mend()
        (stage.workdir("sbx-1") / "go").touch()

        assert (await call).output == "done\n"
        assert runs(stage) == 1
        assert await stage.steps() == [("c1", "ok", "done\n")]


async def test_a_line_cut_between_calls_costs_nothing_but_time(stage: Stage) -> None:
    async with frail_line(stage) as line:
        await stage.shell("c1")
        await line.cut()
        call = asyncio.create_task(stage.shell("c2", "echo x >> note"))
        await asyncio.wait([call], timeout=0.2)
        line.mend()

        assert (await call).outcome is Outcome.OK
        assert runs(stage) == 1


async def test_a_call_lost_on_the_way_is_sent_again_once_its_sandbox_says_so(stage: Stage) -> None:
    async with frail_line(stage) as line:
        await stage.shell("c1")
        await line.swallow()
        call = asyncio.create_task(stage.shell("c2", "echo x >> note"))
        await line.swallowed.wait()
        await line.cut()
        line.mend()

        assert (await call).outcome is Outcome.OK
        assert runs(stage) == 1


async def test_a_line_that_stays_cut_after_a_call_was_sent_masks_the_rollout(stage: Stage) -> None:
    async with frail_line(stage) as line:
        call = asyncio.create_task(stage.shell("c1", WAITING))
        await eventually(lambda: exists(stage, "on"))
        await line.cut()

        with pytest.raises(Masked):
            await call

        assert await stage.verdict() == ("masked", "answer_lost", "gateway")
    (stage.workdir("sbx-1") / "go").touch()


async def test_a_restarted_sandbox_runs_nothing_of_the_rollout_it_forgot(stage: Stage) -> None:
    async with frail_line(stage) as line:
        await stage.shell("c1", "echo kept > state")
        kill(stage.servers["sbx-1"])
        successor = stage.start("sbx-1b", as_sandbox="sbx-1")
        line.lead_to(successor)
        await line.cut()
        line.mend()

        with pytest.raises(Masked):
            await stage.shell("c2", "echo x >> note")
        with pytest.raises(Masked):
            await (await stage.gateway()).act(stage.action("c3", "echo x >> note"))

        assert (await stage.verdict())[:2] == ("masked", "restarted")
        assert not (stage.workdir("sbx-1b") / "note").exists()


async def test_another_gateway_knows_the_boot_as_well(stage: Stage) -> None:
    async with frail_line(stage) as line:
        await stage.shell("c1", "echo kept > state")
        other = await stage.gateway()
        kill(stage.servers["sbx-1"])
        line.lead_to(stage.start("sbx-1b", as_sandbox="sbx-1"))
        await line.cut()
        line.mend()

        with pytest.raises(Masked):
            await other.act(stage.action("c2", "echo x >> note"))

        assert not (stage.workdir("sbx-1b") / "note").exists()


async def test_an_address_that_another_sandbox_got_is_refused_and_the_rollout_moved(stage: Stage) -> None:
    stranger = stage.start("stranger")
    await stage.offer("sbx-1", address=address(stranger))
    first = asyncio.create_task(stage.shell("c1", "echo x >> note; pwd"))
    await eventually(lambda: spent(stage, "sbx-1"))
    await stage.sandbox("sbx-2")

    assert (await first).output.strip() == str(stage.workdir("sbx-2"))
    assert not (stage.workdir("stranger") / "note").exists()


async def test_an_address_that_another_sandbox_got_later_masks_the_rollout(stage: Stage) -> None:
    async with frail_line(stage) as line:
        await stage.shell("c1")
        line.lead_to(stage.start("stranger"))
        await line.cut()
        line.mend()

        with pytest.raises(Masked):
            await stage.shell("c2", "echo x >> note")

        assert (await stage.verdict())[:2] == ("masked", "misrouted")
        assert not (stage.workdir("stranger") / "note").exists()


async def test_a_first_call_that_a_dead_gateway_marked_is_not_sent_by_another(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    left = stage.action("c1", "echo x >> note")
    await marked_elsewhere(stage, "c1", "echo x >> note")

    with pytest.raises(Masked):
        await stage.use_cases.act(left)

    assert await stage.verdict() == ("masked", "answer_lost", "gateway")
    assert not (stage.workdir("sbx-1") / "note").exists()


@pytest.mark.parametrize("knows_the_way", [True, False])
async def test_a_later_call_that_a_dead_gateway_marked_runs_once(stage: Stage, *, knows_the_way: bool) -> None:
    await stage.sandbox("sbx-1")
    await stage.shell("c1")
    left = stage.action("c2", "echo x >> note; cat note")
    prepared = prepare(left)
    await stage.store.calls.begin(prepared.key, prepared.call)
    gateway = stage.use_cases if knows_the_way else await stage.gateway()

    answers = await asyncio.gather(*(gateway.act(left) for _ in range(5)))

    assert {answer.output for answer in answers} == {"x\n"}
    assert await stage.steps() == [("c1", "ok", ""), ("c2", "ok", "x\n")]


@pytest.mark.parametrize(
    ("used_ms", "masked"),
    [
        pytest.param(100, True, id="less than it was promised"),
        pytest.param(9000, False, id="all that its own loops could take"),
        pytest.param(None, False, id="not told"),
    ],
)
async def test_a_time_out_without_the_promised_processors_masks_the_rollout(
    stage: Stage, used_ms: int | None, *, masked: bool
) -> None:
    # Told and not brought about: no test can starve a machine that others use.
    pressure = {"source": "psi", "stalled_ms": 59_000} | ({} if used_ms is None else {"used_ms": used_ms})
    facts = {"boot_id": "b1", "timed_out": True, "duration_ms": 60_000, "pressure": pressure}
    body = {"call_id": "c1", "tool": "shell", "class": "timed_out", "output": "[timed out]", "data": {}, "facts": facts}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        text = json.dumps(body).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))
        writer.close()

    teller = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with teller:
        host, port = teller.sockets[0].getsockname()
        await stage.offer("sbx-1", address=f"http://{host}:{port}")
        if masked:
            with pytest.raises(Masked):
                await stage.shell("c1")
        else:
            assert (await stage.shell("c1")).outcome is Outcome.TIMED_OUT

    assert (await stage.verdict())[:2] == (("masked", "cpu_starved") if masked else (None, None))
    assert await stage.steps() == [("c1", "timed_out", "[timed out]")]


def kill(server: LocalToolserver) -> None:
    server.process.send_signal(signal.SIGKILL)
    until(lambda: server.process.poll() is not None)


async def marked_elsewhere(stage: Stage, call: str, command: str | None = None) -> Prepared:
    """Begin a rollout's call as another gateway that has not come to sending it."""
    prepared = prepare(stage.action(call, command))
    await stage.store.claims.start(Claim(stage.subject(), wait=timedelta(), max_waiting=0), prepared.call)
    return prepared


def runs(stage: Stage, name: str = "sbx-1") -> int:
    return len((stage.workdir(name) / "note").read_text().split())


async def exists(stage: Stage, name: str) -> bool:
    return (stage.workdir("sbx-1") / name).exists()


async def spent(stage: Stage, name: str) -> bool:
    return name in await stage.store.pools.spent(stage.environment.name)


async def test_a_gateway_that_closes_under_a_call_leaves_it_to_the_next_one(stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    async with open_store(stage.settings) as store:
        async with open_use_cases(store, SIGNER, patience=BRISK) as closing:
            call = asyncio.create_task(closing.act(stage.action("c1", "echo x >> note; sleep 0.3; echo done")))
            await asyncio.to_thread(until, (stage.workdir("sbx-1") / "note").exists)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    again = await stage.shell("c1", "echo x >> note; sleep 0.3; echo done")

    assert again.output == "done\n"
    assert (stage.workdir("sbx-1") / "note").read_text() == "x\n"
