"""What models write is shown and never obeyed; a token stays where it belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from rollcage.core.verdict_words import Cause, Word
from support.console import enter
from support.gateways import THEIRS, TOKEN

if TYPE_CHECKING:
    from playwright.async_api import Page, Request

    from support.console import Scene

pytestmark = pytest.mark.asyncio(loop_scope="session")

# Each would set the mark, were it ever taken for a part of the page.
MARK = "document.documentElement.dataset.obeyed = 1"
HOSTILE = {
    "an image that fails": f'<img src=x onerror="{MARK}">',
    "the end of a script and another one": f"</script><script>{MARK}</script>",
    "a picture with a handler": f'<svg onload="{MARK}"><animate onbegin="{MARK}" attributeName=x dur=1s></svg>',
    "a frame": f'<iframe srcdoc="<script>parent.{MARK}</script>"></iframe>',
    "the end of the text and a link": f'</pre></div><a href="javascript:{MARK}" autofocus onfocus="{MARK}">x</a>',
    "a style": '<style>main{display:none}</style><link rel=stylesheet href="//elsewhere.example/x.css">',
    "a template": "{{constructor.constructor('x')()}} ${alert(1)}",
}
STRANGERS = "main :is(img, script, iframe, style, link, svg, animate, [onerror], [onload], [href^=java])"
TERMINAL = "\x1b[2J\x1b[31mred\x1b]8;;https://elsewhere.example\x07link\x1b]8;;\x07\x1b[0m\r\x00"
BIDI = "user\u202e\u2066// admin\u2069\u2066 \u200b\ufeff\U000e0041end"


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_text_that_wants_to_be_part_of_the_page_stays_a_text(scene: Scene, page: Page, text: str) -> None:
    rollout = await scene.rollout("r1", run="run-1")
    await rollout.call(text, tool=text[:200], arguments={text: text, "list": [text]}, outcome="failed", signal=text)
    await rollout.call(text, arguments=text)
    await rollout.end(Word.MASKED, Cause.NODE_LOST, message=text)
    await enter(page, scene, "#/rollouts/r1")

    await expect(page.get_by_label("Output of call 1")).to_have_text(text)
    await expect(page.get_by_label("Output of call 2")).to_be_visible()
    await expect(page.get_by_label("Evidence 1")).to_be_visible()
    strangers = page.locator(
        "main :is(img, script, iframe, style, link, svg, animate, [onerror], [onload], [href^=java])"
    )
    await expect(strangers).to_have_count(0)
    assert await page.evaluate("document.documentElement.dataset.obeyed") is None


async def test_what_a_terminal_would_obey_is_shown_by_its_name(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).call(TERMINAL)
    await enter(page, scene, "#/rollouts/r1")
    shown = page.get_by_label("Output of call 1")
    await expect(shown).to_have_text(
        "ESC[2JESC[31mredESC]8;;https://elsewhere.exampleBELlinkESC]8;;BELESC[0mCRNUL", use_inner_text=True
    )
    await expect(shown.locator("a")).to_have_count(0)
    await expect(shown.locator(".mark").first).to_have_attribute("title", "U+001B")


async def test_what_would_turn_or_hide_a_text_is_shown_by_its_number(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).call(BIDI, arguments={"com\u202emand": BIDI})
    await enter(page, scene, "#/rollouts/r1")
    spelled = "userU+202EU+2066// adminU+2069U+2066 U+200BU+FEFFU+E0041end"
    await expect(page.get_by_label("Output of call 1")).to_have_text(spelled)
    await expect(page.get_by_label("Argument comU+202Emand")).to_have_text(spelled)
    assert "\u202e" not in await page.locator("main").inner_text()


async def test_a_huge_output_is_shown_in_part_until_it_is_asked_for(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).call("0123456789" * 50_000)
    await enter(page, scene, "#/rollouts/r1")
    shown = page.get_by_label("Output of call 1")
    await expect(shown).to_have_text("0123456789" * 2_000)
    await page.get_by_role("button", name="Show all 500,000 characters").click()
    await expect(shown).to_have_text("0123456789" * 50_000)


async def test_the_browser_itself_refuses_what_the_page_does_not_need(scene: Scene, page: Page) -> None:
    await enter(page, scene)
    attempt = """async (what) => {
        const seen = new Promise((resolve) => {
            document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective));
            setTimeout(() => resolve("nothing"), 30000);
        });
        try { await what(); } catch {}
        return seen;
    }"""

    async def refused(what: str) -> str:
        violated: str = await page.evaluate(f"({attempt})(async () => {{ {what} }})")
        return violated

    assert await refused("document.body.innerHTML = '<b>x</b>'") == "require-trusted-types-for"
    assert await refused("await fetch('http://127.0.0.1:9/')") == "connect-src"
    inline = (
        "document.body.append(Object.assign(document.createElement('b'), {id: 'b'})); b.setAttribute('style', 'x:y')"
    )
    assert await refused(inline) == "style-src-attr"
    assert await refused("new Image().src = 'http://127.0.0.1:9/x.png'") == "img-src"
    frame = "const f = document.createElement('iframe'); f.src = 'http://127.0.0.1:9/'; document.body.append(f)"
    assert await refused(frame) == "frame-src"


async def test_a_token_is_sent_as_a_header_and_is_in_no_address_and_no_lasting_place(scene: Scene, page: Page) -> None:
    asked: list[Request] = []

    # A method of a list will not do: Playwright hangs something of its own on whoever listens.
    def hear(request: Request) -> None:
        asked.append(request)

    page.on("request", hear)
    await (await scene.rollout("r1")).end()
    await enter(page, scene, "#/rollouts/r1")
    await page.get_by_role("link", name="Runs").click()
    await expect(page.get_by_role("link", name="run-1")).to_be_visible()

    assert all(request.url.startswith(scene.url) for request in asked)
    assert not any(TOKEN in request.url for request in asked)
    api = [request for request in asked if "/v1/" in request.url]
    assert api
    assert {(await request.all_headers())["authorization"] for request in api} == {f"Bearer {TOKEN}"}
    assert await page.evaluate("[localStorage.length, document.cookie, history.state]") == [0, "", None]
    assert TOKEN not in page.url

    # A reload keeps it, another tab does not have it, signing out forgets it.
    await page.reload()
    await expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_label("Token")).to_be_visible()
    assert await page.evaluate("sessionStorage.length") == 0


async def test_a_wrong_token_is_refused_and_not_kept(scene: Scene, page: Page) -> None:
    await page.goto(f"{scene.url}/console/")
    await page.get_by_label("Token").fill("wrong-0123456789abcdefghijklmnopqrstuvwxyz")
    await page.get_by_role("button", name="Open").click()
    await expect(page.get_by_role("alert")).to_have_text("This token is not known here.")
    assert await page.evaluate("sessionStorage.length") == 0


async def test_a_token_that_is_withdrawn_leads_back_to_the_door(scene: Scene, page: Page) -> None:
    await enter(page, scene)
    await page.evaluate("sessionStorage.setItem('rollcage.token', 'withdrawn-0123456789abcdefghijklmnop')")
    await expect(page.get_by_role("alert")).to_have_text("This token is not known any more.")
    assert await page.evaluate("sessionStorage.length") == 0


async def test_one_tenant_sees_nothing_of_another(scene: Scene, page: Page) -> None:
    await (await scene.rollout("r1")).call("ours alone")
    await enter(page, scene, "#/rollouts", token=THEIRS)
    await expect(page.get_by_text("No rollouts yet")).to_be_visible()
    await page.goto(f"{scene.url}/console/#/rollouts/r1")
    await expect(page.get_by_text("No such rollout")).to_be_visible()
    await page.goto(f"{scene.url}/console/#/runs/run-1")
    await expect(page.get_by_text("No such run")).to_be_visible()
