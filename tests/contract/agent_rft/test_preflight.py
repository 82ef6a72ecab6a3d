"""What a team sees when it tries its job through the example's client, before it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from contract.agent_rft.preflight import AT_ONCE, KEPT_NAMES, Failed, Preflight
from rollcage.gateway.definitions import builtin

if TYPE_CHECKING:
    from contract.agent_rft.platform import Job
    from support.stage import Stage

ITEM = {"messages": [{"role": "user", "content": "Which number is in the file?"}], "reference_answer": "42"}


@pytest.mark.parametrize("wrapped", [False, True], ids=["answers as they are", "answers inside of others"])
async def test_a_sample_is_played_and_graded(job: Job, stage: Stage, *, wrapped: bool) -> None:
    await stage.sandbox("sbx-1")
    sample = Preflight(job, ITEM, wrapped=wrapped)
    assert await sample.turn(("write_file", {"path": "answer", "content": "42"}))
    assert await sample.turn(("read_file", {"path": "answer"}), ("shell", {"command": "cat answer"})) == ["42", "42"]
    assert await sample.grade("42") == 1.0


async def test_more_calls_than_run_at_once_all_run_although_they_share_one_id(job: Job, stage: Stage) -> None:
    await stage.sandbox("sbx-1")
    sample = Preflight(job, ITEM)
    calls = range(2 * AT_ONCE)
    told = await sample.turn(*(("shell", {"command": f"echo {n} >> all; echo {n}"}) for n in calls))
    assert told == [f"{n}\n" for n in calls]
    [everything] = await sample.turn(("shell", {"command": "sort -n all"}))
    assert everything == "".join(told)


async def test_samples_that_share_one_id_share_nothing_else(job: Job, stage: Stage) -> None:
    samples = [Preflight(job, ITEM) for _ in range(2)]
    for number, sample in enumerate(samples):
        await stage.sandbox(f"sbx-{number}")
        await sample.turn(("shell", {"command": f"echo {number} > mine"}))
    assert [await sample.turn(("shell", {"command": "cat *"})) for sample in samples] == [["0\n"], ["1\n"]]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {"command": "exit 7"}),
        ("shell", {"command": "sleep 60", "timeout_ms": 50}),
        ("shell", {"cmd": "ls"}),
        ("shell", {"command": "\ud800"}),
        ("shell", {"command": "head -c 5000000 /dev/zero | tr '\\0' '\\1'"}),
        ("read_file", {"path": "/nowhere", "offset": None, "limit": None}),
        ("session_run", {"session": "none", "command": "ls"}),
    ],
    ids=["fails", "is too slow", "misspelt", "half a letter", "prints without end", "no file", "no session"],
)
async def test_nothing_that_a_model_does_ends_its_sample(
    job: Job, stage: Stage, name: str, arguments: dict[str, Any]
) -> None:
    await stage.sandbox("sbx-1")
    sample = Preflight(job, ITEM)
    assert await sample.turn((name, arguments))
    assert await sample.turn(("shell", {"command": "echo on"})) == ["on\n"]


async def test_a_lost_sandbox_ends_its_sample_and_says_why(job: Job, stage: Stage) -> None:
    server = await stage.sandbox("sbx-1")
    sample = Preflight(job, ITEM)
    await sample.turn(("shell", {"command": "true"}))
    server.process.kill()
    server.process.wait()
    with pytest.raises(Failed, match=r'503.*"masked"'):
        await sample.turn(("shell", {"command": "true"}))
    with pytest.raises(Failed, match=r'503.*"masked"'):
        await sample.grade("42")


@pytest.mark.parametrize("tool", builtin())
def test_no_tool_has_an_argument_that_the_client_keeps_to_itself(tool: str) -> None:
    assert not builtin()[tool].parameters["properties"].keys() & KEPT_NAMES
