"""What graders do in fresh sandboxes: on what was taken out of the rollout's own, and on nothing else of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rollcage.core.ids import RolloutId, RunId
from rollcage.core.verdict_words import Cause, Word
from rollcage.store.records import Subject, Verdict
from support.grading import function

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.grading import Grader

COMMAND = {"kind": "command", "command": 'test "$(cat src/answer)" = 42'}


async def made(grader: Grader, *names: str) -> None:
    """Start sandboxes, all with the same files at the start."""
    for name in names or ("sbx-1", "sbx-2"):
        await grader.stage.sandbox(
            name, setup=["mkdir -p src tests && echo 0 > src/answer && echo strict > tests/rule"]
        )


async def test_a_command_sees_the_artifacts_in_another_sandbox(grader: Grader) -> None:
    grader.use({**COMMAND, "command": "test $(cat src/answer) = 42 && test ! -e elsewhere"}, artifacts=["src"])
    await made(grader)
    await grader.shell("echo 42 > src/answer; touch elsewhere")
    assert await grader.grade() == 1.0


async def test_its_sandbox_is_given_back_and_belongs_to_no_training_run(grader: Grader) -> None:
    grader.use(COMMAND, artifacts=["src"])
    await made(grader)
    await grader.shell("true")
    assert await grader.grade() == 0.0
    assert sorted(await grader.stage.store.pools.spent("small")) == ["sbx-1", "sbx-2"]
    assert len((await grader.stage.store.rollouts.of_run(RunId("ours", "run-1").key)).items) == 1


async def test_tampering_outside_of_the_artifacts_has_no_effect(grader: Grader) -> None:
    grader.use({"kind": "command", "command": "grep -qx strict tests/rule"}, artifacts=["src"])
    await made(grader)
    await grader.shell("echo lax > tests/rule; echo 'exit 0' > ~/.bashrc")
    assert await grader.grade() == 1.0


async def test_what_is_left_out_of_the_artifacts_is_not_there(grader: Grader) -> None:
    grader.use({**COMMAND, "command": "test ! -e src/conftest.py", "without": ["**/conftest.py"]}, artifacts=["src"])
    await made(grader)
    await grader.shell("touch src/conftest.py")
    assert await grader.grade() == 1.0


async def test_hidden_files_come_from_the_item_and_win_over_the_artifacts(grader: Grader) -> None:
    files = {"src/hidden": "item.secret"}
    grader.use({"kind": "command", "command": "grep -qx true src/hidden", "files": files}, artifacts=["src"])
    await made(grader)
    await grader.shell("echo false > src/hidden")
    assert await grader.grade(item={"secret": "true\n"}) == 1.0


async def test_a_report_is_fetched_and_counted(grader: Grader) -> None:
    report = "<testsuite><testcase name='a'/><testcase name='b'><failure/></testcase></testsuite>"
    grader.use({"kind": "command", "command": f'echo "{report}" > r.xml', "junit": "r.xml", "tests": 4})
    await made(grader, "sbx-1")
    assert await grader.grade() == 0.25


@pytest.mark.parametrize(
    ("command", "seconds"),
    [("exit 3", 10), ("sleep 100", 1), ("kill -9 $$", 10), ("no-such-command", 10)],
    ids=["fails", "is too slow", "kills itself", "is not there"],
)
async def test_a_command_that_fails_is_a_zero_of_the_models_own(grader: Grader, command: str, seconds: int) -> None:
    grader.use({"kind": "command", "command": command, "timeoutSeconds": seconds})
    await made(grader, "sbx-1")
    assert await grader.grade() == 0.0


async def test_touched_files_are_found_by_comparing_with_a_fresh_sandbox(grader: Grader) -> None:
    guards = [{"kind": "untouched", "files": ["tests/*"]}]
    full = {"kind": "text", "expected": "item.word"}
    grader.use({"kind": "guards", "guards": guards, "grader": full}, artifacts=["src", "tests"])
    await made(grader)
    await grader.shell("echo lax > tests/rule; touch tests/new; echo 1 > src/answer")
    assert await grader.grade("x", {"word": "x"}) == 0.0
    notes = (await grader.ask("GET", "/v1/rollouts/trace_1/score")).json()["notes"]
    assert notes == ["tests/new was touched", "tests/rule was touched"]


async def test_untouched_files_trip_nothing(grader: Grader) -> None:
    guards = [{"kind": "untouched", "files": ["tests/*"]}]
    full = {"kind": "text", "expected": "item.word"}
    grader.use({"kind": "guards", "guards": guards, "grader": full}, artifacts=["src", "tests"])
    await made(grader)
    await grader.shell("echo 1 > src/answer")
    assert await grader.grade("x", {"word": "x"}) == 1.0


async def test_no_sandbox_for_the_grader_is_a_refusal(grader: Grader) -> None:
    grader.use(COMMAND, timeoutSeconds=2)
    assert await grader.grade() in [(503, "grader_timed_out"), (503, "grading_sandbox_failed")]


async def test_a_sandbox_that_dies_under_the_grader_is_a_refusal(grader: Grader) -> None:
    grader.use({"kind": "command", "command": "touch here; sleep 60"})
    server = await grader.stage.sandbox("sbx-1")
    grading = asyncio.create_task(grader.grade())
    await _until(lambda: asyncio.to_thread((grader.stage.workdir("sbx-1") / "here").exists))
    server.process.kill()
    server.process.wait()
    assert await grading == (503, "grading_sandbox_failed")


async def test_a_grading_that_is_given_up_gives_its_sandbox_back(grader: Grader) -> None:
    grader.use({"kind": "command", "command": "touch here; sleep 60"})
    await grader.stage.sandbox("sbx-1")
    grading = asyncio.create_task(grader.grade())
    await _until(lambda: asyncio.to_thread((grader.stage.workdir("sbx-1") / "here").exists))
    grading.cancel()
    await asyncio.wait({grading})
    assert await grader.stage.store.pools.spent("small") == ("sbx-1",)


async def test_artifacts_that_were_not_taken_in_time_are_a_refusal(grader: Grader) -> None:
    grader.use(COMMAND, artifacts=["src"])
    await made(grader)
    await grader.shell("true")
    await grader.ask("POST", "/v1/rollouts/trace_1/finish")
    assert await grader.grade() == (503, "artifacts_missing")


async def test_artifacts_lost_with_their_sandbox_are_a_refusal_by_the_verdict(grader: Grader) -> None:
    grader.use(COMMAND, artifacts=["src"])
    server = await grader.stage.sandbox("sbx-1")
    await grader.shell("true")
    server.process.kill()
    server.process.wait()
    grading = asyncio.create_task(grader.grade())
    subject = Subject.of(RolloutId("ours", "trace_1"), run="run-1", environment="small")
    await grader.stage.store.rollouts.end(subject, Verdict(Word.MASKED, by="controller", cause=Cause.NODE_LOST))
    assert await grading == (503, "masked")


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("rm -rf src", True),
        ("chmod 000 src", False),
        ("rm -rf src; echo x > src", True),
        ("head -c 400000 /dev/urandom > src/large", True),
        ("ln -s / src/root; mkfifo src/pipe", False),
        ("touch \"$(printf 'src/a\\377b')\" \"$(printf 'src/new\\nline')\" src/-rf", False),
        ("truncate -s 1T src/huge", True),
        ("cd src; for n in $(seq 60); do mkdir -p d; cd d; done; touch deep", False),
    ],
    ids=[
        "removed",
        "closed",
        "made a file",
        "made too large",
        "filled with links and pipes",
        "given odd names",
        "made huge and hollow",
        "made deep",
    ],
)
async def test_what_the_model_did_to_the_artifacts_is_graded_and_never_refused(
    grader: Grader,
    command: str,
    absent: bool,  # noqa: FBT001 - a column of the table
) -> None:
    grader.use(function("looks_at_artifacts"), artifacts=["src"], artifactBytes=200_000)
    await made(grader, "sbx-1")
    await grader.shell(command)
    assert isinstance(await grader.grade(), float)
    notes = (await grader.ask("GET", "/v1/rollouts/trace_1/score")).json()["notes"]
    assert ("src" in notes) is absent
    await asyncio.to_thread((grader.stage.workdir("sbx-1") / "src").chmod, 0o755) if "chmod" in command else None


async def test_odd_names_among_the_artifacts_reach_the_fresh_sandbox_or_cost_the_score(grader: Grader) -> None:
    grader.use(COMMAND, artifacts=["src"])
    await made(grader)
    await grader.shell("touch \"$(printf 'src/a\\377b')\" \"$(printf 'src/new\\nline')\"; echo 42 > src/answer")
    assert await grader.grade() in {0.0, 1.0}


async def test_a_repeat_grades_what_was_taken_first(grader: Grader) -> None:
    grader.use(function("nobody"), artifacts=["src"])
    await made(grader)
    await grader.shell("echo 42 > src/answer")
    assert await grader.grade() == (503, "grader_crashed")
    grader.use(COMMAND, artifacts=["src"])
    assert await grader.grade() == 1.0


async def _until(look: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await look():  # noqa: ASYNC110 - a process is watched, which tells nobody
            await asyncio.sleep(0.01)
