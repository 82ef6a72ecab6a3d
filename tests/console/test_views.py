"""What each view shows, read as a person reads it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from rollcage.core.verdict_words import Cause, Word
from support.console import enter

if TYPE_CHECKING:
    from playwright.async_api import Page

    from support.console import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = 50
UNKNOWN = "\N{EN DASH}"


async def test_pools_fill_before_ones_eyes(scene: Scene, page: Page) -> None:
    await enter(page, scene, "#/pools")
    pool = page.get_by_role("region", name="small")

    async def figures(**expected: str) -> None:
        for name, value in expected.items():
            await expect(pool.locator(f"[data-figure={name}]")).to_have_text(value)

    async with scene.telling(small=(3, 2)):
        await figures(wanted="3", ready="0", starting="2", claimed="0", queued="0")
    await scene.rollout("r1")
    await scene.offer()
    async with scene.telling(small=(3, 1)):
        await figures(wanted="3", ready="1", starting="1", claimed="1", queued="0")
        # The time series followed, and tells its last values to those who cannot see it.
        series = pool.get_by_role("img", name=re.compile(r"claimed 1, ready 1, starting 1, queued 0"))
        await expect(series).to_be_visible()


async def test_rollouts_in_line_show_as_queued(scene: Scene, page: Page) -> None:
    await enter(page, scene, "#/pools")
    async with scene.waiting("r1"):
        queued = page.get_by_role("region", name="small").locator("[data-figure=queued]")
        await expect(queued).to_have_text("1")


async def test_pools_without_a_controller_say_so(scene: Scene, page: Page) -> None:
    await enter(page, scene)
    await expect(page.get_by_text("No controller has been heard of")).to_be_visible()
    await expect(page.get_by_role("region", name="small").locator("[data-figure=starting]")).to_have_text(UNKNOWN)
    async with scene.telling(small=(3, 2)):
        await expect(page.get_by_text("No controller has been heard of")).to_be_hidden()


async def test_rollouts_are_shown_with_verdict_and_cause_and_filtered(scene: Scene, page: Page) -> None:
    await (await scene.rollout("fine")).end()
    await (await scene.rollout("lost", run="run-2")).end(Word.MASKED, Cause.NODE_LOST, by="controller")
    await scene.rollout("busy")
    await enter(page, scene, "#/rollouts")

    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(3)
    await expect(rows.filter(has_text="lost")).to_contain_text("masked")
    await expect(rows.filter(has_text="lost")).to_contain_text("node lost")
    await expect(rows.filter(has_text="busy")).to_contain_text("running")
    await expect(rows.filter(has_text="fine")).to_contain_text("not graded")

    await page.get_by_role("link", name="Masked").click()
    await expect(rows).to_have_count(1)
    assert page.url.endswith("#/rollouts?label=masked")
    await page.get_by_role("link", name="All", exact=True).click()
    await page.get_by_label("of", exact=True).select_option("run-2")
    await expect(rows).to_have_count(1)
    await page.get_by_role("link", name="Running").click()
    await expect(page.get_by_text("No rollout matches")).to_be_visible()


async def test_rollouts_are_paged_there_and_back(scene: Scene, page: Page) -> None:
    for number in range(2 * PAGE + 3):
        await (await scene.rollout(f"r{number:03}")).end()
    await enter(page, scene, "#/rollouts")
    first = page.locator("tbody th").first
    await expect(first).to_have_text("r102")
    await page.get_by_role("link", name="Older").click()
    await expect(first).to_have_text("r052")
    await page.get_by_role("link", name="Older").click()
    await expect(first).to_have_text("r002")
    await expect(page.get_by_role("link", name="Older")).to_have_count(0)
    await page.get_by_role("link", name="Newer").click()
    await expect(first).to_have_text("r052")
    await page.get_by_role("link", name="Newer").click()
    await expect(first).to_have_text("r102")


async def test_a_trajectory_shows_each_call_as_the_model_saw_it_with_its_facts(scene: Scene, page: Page) -> None:
    rollout = await scene.rollout("r1")
    await rollout.call("hello\n", arguments={"command": "echo hello"}, lasted=40)
    await rollout.call(
        "half of it\n",
        arguments={"command": "yes"},
        outcome="failed",
        lasted=5002,
        exit_code=137,
        signal="SIGKILL",
        truncated=True,
        output_bytes=3 << 20,
        oom_kills=1,
    )
    await rollout.end(Word.MASKED, Cause.EVICTED, by="controller", message="disk pressure")
    await enter(page, scene, "#/rollouts/r1")

    first, second = page.get_by_role("article", name="Call 1"), page.get_by_role("article", name="Call 2")
    await expect(first.get_by_label("Output of call 1")).to_have_text("hello\n")
    await expect(first.get_by_label("Argument command")).to_have_text("echo hello")
    await expect(first).to_contain_text("exit code 0")
    await expect(first).to_contain_text("answered after 40 ms")
    await expect(first).to_contain_text("peak memory 7 MiB")
    for fact in ("failed", "exit code 137", "signal SIGKILL", "ran 5 s", "truncated from 3 MiB", "killed for memory 1"):
        await expect(second).to_contain_text(fact)
    await expect(page.locator("h1 + .verdict")).to_have_text("maskedevicted")
    await expect(page.get_by_label("Fact message")).to_have_text("disk pressure")


async def test_evidence_is_told_by_its_paths_and_open_where_somebody_asks_why(scene: Scene, page: Page) -> None:
    ending = {"cause": "exited", "details": {"signal": "SIGKILL"}}
    await (await scene.rollout("lost")).end(Word.MASKED, Cause.TOOLSERVER_DIED, by="controller", ending=ending)
    await (await scene.rollout("fine")).end(ending=ending)
    await enter(page, scene, "#/rollouts/lost")
    await expect(page.get_by_label("Fact ending.details.signal")).to_have_text("SIGKILL")
    await page.goto(f"{scene.url}/console/#/rollouts/fine")
    await expect(page.get_by_text("Evidence (1)")).to_be_visible()
    await expect(page.get_by_label("Fact ending.cause")).to_be_hidden()


async def test_a_time_just_below_a_minute_is_not_told_as_60_seconds(scene: Scene, page: Page) -> None:
    rollout = await scene.rollout("r1")
    await rollout.call("", lasted=119_600)
    await rollout.end()
    await enter(page, scene, "#/rollouts/r1")
    await expect(page.get_by_text("after 2 min 0 s", exact=True)).to_be_visible()


async def test_on_a_narrow_screen_a_tools_name_stays_whole(scene: Scene, page: Page) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    rollout = await scene.rollout("r1")
    await rollout.call("", tool="session_interrupt", outcome="timed_out")
    await enter(page, scene, "#/rollouts/r1")
    name = page.get_by_role("heading", name="session_interrupt")
    await expect(name).to_be_visible()
    lines = await name.evaluate(
        "one => one.getBoundingClientRect().height / parseFloat(getComputedStyle(one).fontSize)"
    )
    assert lines < 2


async def test_a_running_rollouts_calls_show_up_as_they_come(scene: Scene, page: Page) -> None:
    rollout = await scene.rollout("r1")
    await enter(page, scene, "#/rollouts/r1")
    await expect(page.get_by_text("No calls")).to_be_visible()
    await rollout.call("one")
    await expect(page.get_by_role("article")).to_have_count(1)
    await rollout.call("two")
    await expect(page.get_by_role("article")).to_have_count(2)
    await rollout.end()
    await expect(page.locator("h1 + .verdict")).to_have_text("trainablefinished")


async def test_a_long_trajectory_is_loaded_on_demand(scene: Scene, page: Page) -> None:
    rollout = await scene.rollout("r1")
    for number in range(PAGE + 2):
        await rollout.call(f"{number}")
    await enter(page, scene, "#/rollouts/r1")
    await expect(page.get_by_role("article")).to_have_count(PAGE)
    await page.get_by_role("button", name="Load more calls").click()
    await expect(page.get_by_role("article")).to_have_count(PAGE + 2)


async def test_an_address_leads_to_one_call(scene: Scene, page: Page) -> None:
    rollout = await scene.rollout("r1")
    for number in range(20):
        await rollout.call(f"{number}\n" * 30)
    await enter(page, scene, "#/rollouts/r1?call=17")
    await expect(page.get_by_role("article", name="Call 17")).to_be_focused()
    await expect(page.get_by_role("article", name="Call 17")).to_be_in_viewport()


async def test_a_runs_health_and_plots_are_shown(scene: Scene, page: Page) -> None:
    for number in range(40):
        rollout = await scene.rollout(f"r{number}")
        await rollout.call("0123456789", arguments={"command": "ls"}, lasted=100)
        await rollout.call("0123456789", arguments={"command": "ls"}, lasted=100, outcome="failed")
        if number % 10 == 0:
            await rollout.end(Word.MASKED, Cause.NODE_LOST)
        else:
            await rollout.end()
            await rollout.grade(number / 40, item=f"item-{number % 3}")
    await enter(page, scene, "#/runs/run-1?step=20")

    await expect(page.get_by_text("Hold: more than every twentieth")).to_be_visible()
    for plot in (
        r"^Reward\. 2: score 0\.75 \(0\.5\d to 0\.9\d\)$",
        r"^Verdicts\. 2: trainable 18, masked 2, abandoned 0, running 0$",
        r"^Calls per rollout\. 2: mean 2, most 2$",
        r"^Repeated calls\. 2: repeated 50 %$",
        r"^Latency of calls\. 2: median 100 ms, slowest .* 100 ms$",
        r"^Output length\. 2: per call 10, per rollout 20$",
        r"^Calls by class\. 2: ok 20, failed 20, timed out 0, malformed 0, refused 0$",
        r"^Scores by item\. item-\d: score",
    ):
        await expect(page.get_by_role("img", name=re.compile(plot))).to_have_count(1)
    await page.get_by_role("link", name="Its rollouts").click()
    await expect(page.get_by_role("heading", name="Rollouts")).to_be_visible()


async def test_a_run_that_nobody_graded_says_so(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).end()
    await enter(page, scene, "#/runs")
    await expect(page.locator("tbody tr")).to_contain_text("not graded")
    await page.get_by_role("link", name="run-1").click()
    await expect(page.get_by_role("img", name="Reward. not graded")).to_be_visible()


async def test_where_there_is_nothing_it_says_what_would_be_there(scene: Scene, page: Page) -> None:
    await enter(page, scene, "#/rollouts")
    await expect(page.get_by_text("No rollouts yet")).to_be_visible()
    await page.get_by_role("link", name="Runs").click()
    await expect(page.get_by_text("No runs yet")).to_be_visible()
    await page.goto(f"{scene.url}/console/#/rollouts/nobody")
    await expect(page.get_by_text("No such rollout")).to_be_visible()
    await page.goto(f"{scene.url}/console/#/runs/nobody")
    await expect(page.get_by_text("No such run")).to_be_visible()


async def test_a_gateway_that_is_away_is_said_and_what_was_shown_stays(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).end()
    await enter(page, scene, "#/rollouts")
    await expect(page.get_by_role("link", name="r1")).to_be_visible()
    await page.context.set_offline(True)
    await expect(page.get_by_text("No answer, trying again")).to_be_visible()
    await expect(page.get_by_role("link", name="r1")).to_be_visible()
    await page.context.set_offline(False)
    await expect(page.get_by_text("Live")).to_be_visible()


async def test_steps_are_counted_from_the_runs_beginning(scene: Scene, page: Page) -> None:
    """Of a long run only the newest rollouts are read; where its steps begin must not depend on that."""
    await page.goto(f"{scene.url}/console/")
    numbers = """async ([size, before]) => {
        const tally = { calls: 0, repeated: 0, outcomes: {}, median_ms: null, slowest_ms: null, shown: 0 };
        const rollouts = Array.from({ length: 10 }, () => ({ tally, verdict: null, score: null }));
        const { grouped } = await import("/console/groups.js");
        return grouped(rollouts, size, before).map((group) => [group.number, group.rollouts]);
    }"""
    assert await page.evaluate(numbers, [4, 0]) == [[1, 4], [2, 4], [3, 2]]
    assert await page.evaluate(numbers, [4, 8]) == [[3, 4], [4, 4], [5, 2]]
    assert await page.evaluate(numbers, [4, 5]) == [[3, 4], [4, 3]]
    assert await page.evaluate(numbers, [20, 5]) == []
