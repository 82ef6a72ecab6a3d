"""For everybody: by keyboard, on narrow and wide screens, light and dark, without motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pytest
from playwright.async_api import expect

from rollcage.core.verdict_words import Cause, Word
from support.console import enter

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from support.console import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Where to find each view, and what is there once it is drawn.
VIEWS = {
    "#/pools": "section .plot text",
    "#/rollouts": "table",
    "#/rollouts/r1": "article",
    "#/runs": "table",
    "#/runs/run-1": "figure .plot text",
}

# Texts whose colour stands out from what is behind them by less than WCAG AA asks for.
FAINT = """() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const over = (colours) => {
        context.clearRect(0, 0, 1, 1);
        for (const colour of colours) { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); }
        return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        const layers = [];
        for (let one = element; one; one = one.parentElement) layers.unshift(getComputedStyle(one).backgroundColor);
        return layers;
    };
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
        const element = node.parentElement;
        if (!node.data.trim() || !element.checkVisibility() || element.closest("noscript, .skip")) continue;
        const style = getComputedStyle(element);
        const layers = behind(element);
        const ink = element.namespaceURI.endsWith("svg") ? style.fill : style.color;
        const [a, b] = [light(over([...layers, ink])), light(over(layers))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push(`${node.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
    }
    return found;
}"""


async def write(scene: Scene) -> None:
    rollout = await scene.rollout("r1")
    await rollout.call("x" * 300 + " \x1b[31m " + "word " * 100, arguments={"command": "y" * 300, "timeout": 5})
    await rollout.call("no\n", outcome="failed", exit_code=1, truncated=True, oom_kills=1)
    await rollout.end(Word.MASKED, Cause.NODE_LOST, message="z" * 300)
    for name, word in (("trainable", Word.TRAINABLE), ("abandoned", Word.ABANDONED)):
        await (await scene.rollout(f"trace_{name}" + "0" * 100)).end(word)
    await scene.rollout("busy")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
async def test_every_view_fits_the_screen_and_can_be_read(
    scene: Scene, browser: Browser, scheme: Literal["light", "dark"], width: int
) -> None:
    await write(scene)
    context = await browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = await context.new_page()
    await enter(page, scene)
    for view, content in VIEWS.items():
        await page.goto(f"{scene.url}/console/{view}")
        await expect(page.locator("main").locator(content).first).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= width, view
        assert await page.evaluate(FAINT) == [], view
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert await page.evaluate(FAINT) == []
    await context.close()


async def test_everything_is_reached_by_keyboard(scene: Scene, page: Page) -> None:
    await write(scene)
    await page.goto(f"{scene.url}/console/#/rollouts")
    await expect(page.get_by_label("Token")).to_be_focused()
    await page.keyboard.insert_text("ours-0123456789abcdefghijklmnopqrstuvwxyz")
    await page.keyboard.press("Enter")
    link = page.get_by_role("link", name="r1", exact=True)
    await expect(link).to_be_visible()
    for _ in range(40):
        await page.keyboard.press("Tab")
        if await link.evaluate("(element) => element === document.activeElement"):
            break
    outline = await link.evaluate("(element) => getComputedStyle(element).outlineStyle")
    assert outline == "solid"
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("article", name="Call 1")).to_be_visible()


async def test_a_plot_is_read_with_the_arrow_keys(scene: Scene, page: Page) -> None:
    for number in range(3):
        rollout = await scene.rollout(f"r{number}")
        for _ in range(number + 1):
            await rollout.call("x")
    await enter(page, scene, "#/runs/run-1?step=1")
    plot = page.get_by_role("img", name="Calls per rollout")
    await expect(plot).to_have_accessible_name("Calls per rollout. 3: mean 3, most 3")
    await plot.focus()
    await page.keyboard.press("Home")
    await expect(plot).to_have_accessible_name("Calls per rollout. 1: mean 1, most 1")
    await page.keyboard.press("ArrowRight")
    await expect(plot).to_have_accessible_name("Calls per rollout. 2: mean 2, most 2")
    await page.keyboard.press("Escape")
    await expect(plot).to_have_accessible_name("Calls per rollout. 3: mean 3, most 3")


async def test_a_list_that_refreshes_keeps_the_focus(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).end()
    await enter(page, scene, "#/rollouts")
    await page.get_by_role("link", name="r1", exact=True).focus()
    await (await scene.rollout("r2")).end()
    await expect(page.get_by_role("link", name="r2", exact=True)).to_be_visible()
    await expect(page.get_by_role("link", name="r1", exact=True)).to_be_focused()


async def test_nothing_moves_for_those_who_do_not_want_it(scene: Scene, browser: Browser) -> None:
    context = await browser.new_context(reduced_motion="reduce")
    page = await context.new_page()
    await enter(page, scene)
    bar = page.locator(".level i").first
    await bar.wait_for(state="attached")
    assert await bar.evaluate("(element) => getComputedStyle(element).transitionDuration") == "0s"
    await context.close()
