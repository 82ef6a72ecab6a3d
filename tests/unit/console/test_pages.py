"""The console's files as they are served: which there are, and what the browser is told along with them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from rollcage.console.pages import CONSOLE_PATH, console
from rollcage.gateway.app import gateway
from support.gateways import Caller, all_is_well, parts

STATIC = {file.name: file.read_text() for file in files("rollcage.console").joinpath("static").iterdir()}


@pytest.fixture
def ask() -> Caller:
    return Caller(gateway(parts(), checks=all_is_well, mounts={CONSOLE_PATH: console()}))


async def test_the_page_needs_no_token_and_allows_nothing_but_itself(ask: Caller) -> None:
    reply = await ask("GET", "/console/", headers={})
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = reply.headers["content-security-policy"]
    for part in ("default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'"):
        assert part in policy
    assert "unsafe" not in policy
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("name", sorted(STATIC))
async def test_every_file_is_served_with_the_same_policy(ask: Caller, name: str) -> None:
    reply = await ask("GET", f"/console/{name}", headers={})
    assert reply.status == 200
    assert reply.body.decode() == STATIC[name]
    assert "script-src 'self'" in reply.headers["content-security-policy"]


async def test_an_address_without_its_last_slash_leads_there(ask: Caller) -> None:
    reply = await ask("GET", "/console", headers={})
    assert (reply.status, reply.headers["location"].endswith("/console/")) == (307, True)


@pytest.mark.parametrize(
    "name", ["nothing.js", "../pages.py", "..%2fpages.py", "%2e%2e/pages.py", "static/main.js", "%00"]
)
async def test_what_is_not_the_consoles_is_not_served(ask: Caller, name: str) -> None:
    assert (await ask("GET", f"/console/{name}", headers={})).status == 404


async def test_a_file_that_did_not_change_is_not_sent_again(ask: Caller) -> None:
    tag = (await ask("GET", "/console/main.js", headers={})).headers["etag"]
    again = await ask("GET", "/console/main.js", headers={"if-none-match": tag})
    assert (again.status, again.body) == (304, b"")
    other = await ask("GET", "/console/main.js", headers={"if-none-match": '"old"'})
    assert other.status == 200


async def test_nothing_can_be_sent_to_it(ask: Caller) -> None:
    assert (await ask("POST", "/console/", {}, headers={})).status == 405
    head = await ask("HEAD", "/console/", headers={})
    assert (head.status, head.body, head.headers["content-length"]) == (
        200,
        b"",
        str(len(STATIC["index.html"].encode())),
    )


@pytest.mark.parametrize("name", sorted(STATIC))
def test_no_file_makes_html_of_a_text_or_asks_anybody_else(name: str) -> None:
    unsafe = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function|DOMParser|srcdoc|localStorage"
    assert re.search(unsafe, STATIC[name]) is None
    others = set(re.findall(r"https?://[^\"')\s]+", STATIC[name])) - {"http://www.w3.org/2000/svg"}
    assert others == set()
