"""What is graded is frozen first: nobody changes it while it is taken, nor afterwards."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause, Word
from rollcage.grading.artifacts import Artifacts
from rollcage.grading.taking import Export
from rollcage.rollouts.sealing import seal
from rollcage.store.records import Subject, Verdict
from support.frail_line import OldRelease, frail_line
from support.grading import function
from support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from support.grading import Grader
    from support.local_toolserver import LocalToolserver

ROLLOUT = RolloutId("ours", "trace_1")
TOOLS = "/agent-rft/runs/run-1/environments/small/tools"
OVER = "This rollout is over; nothing was run."
SETUP = ["mkdir -p src && echo 0 > src/answer"]
WRITES = "while :; do n=$((n+1)); for f in a b c d; do echo $n > src/$f; done; done"


async def made(grader: Grader, name: str = "sbx-1") -> LocalToolserver:
    return await grader.stage.sandbox(name, setup=SETUP)


async def tool(grader: Grader, name: str, **arguments: Any) -> str:
    body = {"name": name, "arguments": arguments, "trace_id": "trace_1"}
    reply = await grader.ask("POST", TOOLS, body)
    assert reply.status == 200, reply
    output: str = reply.json()["output"]
    return output


async def taken(grader: Grader) -> dict[str, bytes]:
    """Return the files that the grader was given."""
    kept = await grader.stage.store.scores.taken(ROLLOUT.key)
    assert kept
    return dict(Artifacts.read(Export.read(kept).archives).trees["src"])


def there(grader: Grader, name: str = "sbx-1") -> dict[str, bytes]:
    """Return the files that are in the sandbox now."""
    src = grader.stage.workdir(name) / "src"
    return {path.name: path.read_bytes() for path in src.iterdir()}


async def present(path: Path) -> None:
    await eventually(lambda: asyncio.to_thread(path.exists))


async def sealing(grader: Grader) -> None:
    """Wait until calls are refused."""

    async def refused() -> bool:
        return await grader.shell("true") == OVER

    await eventually(refused)


async def says(grader: Grader, word: Word, cause: Cause) -> None:
    subject = Subject.of(ROLLOUT, run="run-1", environment="small")
    await grader.stage.store.rollouts.end(subject, Verdict(word, by="controller", cause=cause))


@pytest.mark.parametrize(
    "writer",
    [f"({WRITES}) &", f"setsid nohup sh -c '{WRITES}' > /dev/null 2>&1 &"],
    ids=["in the background", "in a session of its own"],
)
async def test_a_writer_in_the_background_changes_nothing_after_the_freeze(grader: Grader, writer: str) -> None:
    grader.use(function("looks_at_artifacts"), artifacts=["src"])
    await made(grader)
    await tool(grader, "session_create", session="s")
    await tool(grader, "session_run", session="s", command=writer)
    await present(grader.stage.workdir("sbx-1") / "src" / "d")

    assert isinstance(await grader.grade(), float)

    # The sandbox is left running by this test, so a writer that lived would have gone on.
    given = await taken(grader)
    assert await asyncio.to_thread(there, grader) == given
    # One round of the writer at most was cut off in the middle.
    rounds = {int(given[name] or b"-1") for name in "abcd"} - {-1}
    assert max(rounds) - min(rounds) <= 1


async def test_a_call_that_races_with_the_grade_is_in_the_artifacts_or_was_refused(grader: Grader) -> None:
    grader.use(function("looks_at_artifacts"), artifacts=["src"])
    await made(grader)
    await grader.shell("true")
    done: set[str] = set()

    async def calls(client: int) -> None:
        for number in range(100_000):
            line = f"{client}.{number}"
            output = await grader.shell(f"echo {line} > src/{line}; echo {line}")
            if output == OVER:
                return
            assert output == f"{line}\n"
            done.add(line)

    clients = asyncio.gather(*(calls(client) for client in range(4)))
    await eventually(lambda: asyncio.sleep(0, len(done) >= 8))
    assert isinstance(await grader.grade(), float)
    await clients

    assert {name for name in await taken(grader) if name != "answer"} == done


async def test_a_call_that_never_ends_does_not_hold_the_grade_up(grader: Grader) -> None:
    grader.use(function("looks_at_artifacts"), artifacts=["src"])
    await made(grader)
    await grader.shell("true")
    running = asyncio.create_task(grader.shell("touch src/begun; sleep 1000; touch src/late"))
    await present(grader.stage.workdir("sbx-1") / "src" / "begun")

    assert isinstance(await grader.grade(), float)

    assert await running == "[stopped: the sandbox takes no more calls]"
    assert sorted(await taken(grader)) == ["answer", "begun"]


async def test_a_sealed_rollout_is_over_for_everyone_and_can_still_be_graded(grader: Grader) -> None:
    grader.use({"kind": "command", "command": "grep -qx 42 src/answer"}, artifacts=["src"])
    await made(grader)
    await made(grader, "sbx-2")
    await grader.shell("echo 42 > src/answer")
    # As a gateway does that is killed then.
    await seal(await grader.stage.use_cases.reach(ROLLOUT))

    assert await grader.shell("echo 0 > src/answer") == OVER
    call = {"environment": "small", "tool": "shell", "arguments": {"command": "true"}}
    assert (await grader.ask("POST", "/v1/rollouts/trace_1/calls", call)).code == (410, "rollout_ended")
    assert (await grader.ask("PUT", "/v1/rollouts/trace_1/files?path=src/answer", b"0")).code == (410, "rollout_ended")
    assert (await grader.ask("GET", "/v1/rollouts/trace_1/files?path=src/answer")).body == b"42\n"
    assert (await grader.stage.use_cases.verdict(ROLLOUT)).word is None
    assert (await grader.stage.store.pools.counts("small")).ready == 1

    assert await grader.grade() == 1.0


async def test_a_grader_that_crashed_is_asked_again_on_the_same_files(grader: Grader) -> None:
    grader.use(function("raises"), artifacts=["src"])
    server = await made(grader)
    await grader.shell("echo 42 > src/answer")
    assert await grader.grade() == (503, "grader_crashed")
    server.process.kill()
    server.process.wait()
    await made(grader, "sbx-2")

    grader.use({"kind": "command", "command": "grep -qx 42 src/answer"}, artifacts=["src"])
    assert await grader.grade() == 1.0


@pytest.mark.parametrize(
    ("word", "cause", "graded"),
    [(Word.MASKED, Cause.NODE_LOST, (503, "masked")), (Word.TRAINABLE, Cause.OUT_OF_MEMORY, 0.0)],
    ids=["by our doing: masked", "by the model's doing: graded without artifacts"],
)
async def test_a_sandbox_that_dies_under_the_seal_gets_the_verdict_that_its_death_deserves(
    grader: Grader, word: Word, cause: Cause, graded: Any
) -> None:
    grader.use({"kind": "text", "expected": "item.word", "found": "file:src/answer"}, artifacts=["src"])
    server = await made(grader)
    await grader.shell("true")
    running = asyncio.create_task(tool(grader, "shell", command="touch begun; sleep 60"))
    await present(grader.stage.workdir("sbx-1") / "begun")
    grading = asyncio.create_task(grader.grade(item={"word": "0"}))
    await sealing(grader)

    server.process.kill()
    await asyncio.to_thread(server.process.wait)
    await says(grader, word, cause)

    assert await grading == graded
    await asyncio.wait({running})
    # Masked, the call is refused as well; that it was is no error of this test.
    assert isinstance(running.exception(), AssertionError) == (word is Word.MASKED)


async def test_artifacts_of_an_older_toolserver_are_taken_as_before(grader: Grader) -> None:
    grader.use({"kind": "command", "command": "grep -qx 42 src/answer"}, artifacts=["src"])
    async with frail_line(grader.stage, kind=OldRelease, setup=SETUP):
        await grader.shell("echo 42 > src/answer")
        await made(grader, "sbx-2")
        with capture_logs() as logs:
            assert await grader.grade() == 1.0
    assert [log["log_level"] for log in logs if log["event"] == "sandbox_not_sealed"] == ["warning"]


async def test_a_first_call_that_races_with_the_grade_is_no_rollout_without_calls(grader: Grader) -> None:
    grader.use(function("looks_at_artifacts"), artifacts=["src"])
    await made(grader)

    class FirstCallComesLate:
        """Use cases that are overtaken by a call, at the last moment."""

        def __getattr__(self, name: str) -> Any:
            return getattr(grader.stage.use_cases, name)

        async def finish(self, *args: Any, **kwargs: Any) -> Any:
            await grader.shell("echo 1 > src/answer")
            return await grader.stage.use_cases.finish(*args, **kwargs)

    grader.desk._use_cases = FirstCallComesLate()  # type: ignore[assignment]  # noqa: SLF001 - for the race's sake
    assert await grader.grade() == (503, "artifacts_missing")
    assert await grader.grade() == (503, "artifacts_missing")
