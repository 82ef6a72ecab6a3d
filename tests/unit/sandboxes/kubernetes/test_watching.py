from __future__ import annotations

from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rollcage.sandboxes.kubernetes.watching import Backoff, Listed, Update, follow
from support.api_server import EXPIRED, Answer, ScriptedApiServer, event, failure, listed
from support.pods import pod, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PODS = "/api/v1/namespaces/sandboxes/pods"
ONE = pod(running(), name="one")
TWO = pod(running(), name="two")
OPEN = Answer(events=[], stays_open=True)


class Pauses(Backoff):
    """Pauses that take no time and are noted."""

    def __init__(self) -> None:
        self.taken: list[float] = []

        async def note(seconds: float) -> None:
            self.taken.append(seconds)

        super().__init__(first=1, longest=4, sleep=note, share=lambda: 1)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@asynccontextmanager
async def following(server: ScriptedApiServer, tmp_path: Path, pauses: Pauses) -> AsyncIterator[AsyncIterator[Update]]:
    async with (
        server.served(tmp_path) as api,
        aclosing(follow(api, PODS, selector="a=b", backoff=pauses)) as updates,
    ):
        yield updates


async def told(server: ScriptedApiServer, tmp_path: Path, pauses: Pauses, count: int) -> list[str]:
    """Return the first updates, in short."""
    async with following(server, tmp_path, pauses) as updates:
        return [short(await anext(updates)) for _ in range(count)]


def short(update: Update) -> str:
    if isinstance(update, Listed):
        return " ".join(["listed", *(found["metadata"]["name"] for found in update.objects)])
    return f"{type(update).__name__.lower()} {update.object['metadata']['name']}"


async def test_it_lists_then_watches_from_there(tmp_path: Path, pauses: Pauses) -> None:
    changes = [event("ADDED", TWO, "101"), event("MODIFIED", TWO, "102"), event("DELETED", TWO, "103")]
    server = ScriptedApiServer(listed(ONE, version="100"), Answer(events=changes))

    assert await told(server, tmp_path, pauses, 4) == ["listed one", "present two", "present two", "removed two"]
    assert server.asked[0].query == {"limit": "500", "labelSelector": "a=b"}
    assert (
        server.asked[1].query.items()
        >= {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "100"}.items()
    )


async def test_a_long_list_comes_in_pages(tmp_path: Path, pauses: Pauses) -> None:
    server = ScriptedApiServer(listed(ONE, rest="more"), listed(TWO, version="200"), OPEN)

    assert await told(server, tmp_path, pauses, 1) == ["listed one two"]
    assert server.asked[1].query["continue"] == "more"


async def test_a_list_whose_pages_expired_is_begun_anew(tmp_path: Path, pauses: Pauses) -> None:
    server = ScriptedApiServer(listed(ONE, rest="more"), failure(410, "Expired"), listed(ONE, TWO))

    assert await told(server, tmp_path, pauses, 1) == ["listed one two"]


async def test_a_watch_that_ends_goes_on_where_it_was(tmp_path: Path, pauses: Pauses) -> None:
    server = ScriptedApiServer(
        listed(version="100"),
        Answer(events=[event("ADDED", ONE, "101"), event("BOOKMARK", {}, "150")]),
        Answer(events=[event("ADDED", TWO, "151")]),
    )

    assert await told(server, tmp_path, pauses, 3) == ["listed", "present one", "present two"]
    assert server.asked[2].query["resourceVersion"] == "150"
    assert pauses.taken == []


@pytest.mark.parametrize(
    "expired",
    [Answer(events=[event("ADDED", ONE, "101"), EXPIRED]), failure(410, "Expired", "too old resource version")],
    ids=["in the middle", "at once"],
)
async def test_a_watch_that_expired_is_replaced_by_a_new_list(tmp_path: Path, pauses: Pauses, expired: Answer) -> None:
    server = ScriptedApiServer(listed(version="100"), expired, listed(TWO, version="200"), OPEN)

    async with following(server, tmp_path, pauses) as updates:
        seen = [await anext(updates) for _ in range(3 if expired.events else 2)]

    assert short(seen[-1]) == "listed two"
    assert pauses.taken == []


async def test_failures_are_waited_out_longer_each_time(tmp_path: Path, pauses: Pauses) -> None:
    down = failure(503)
    server = ScriptedApiServer(down, down, down, down, listed(ONE))

    assert await told(server, tmp_path, pauses, 1) == ["listed one"]
    assert pauses.taken == [1, 2, 4, 4]


async def test_a_throttling_server_is_given_the_time_it_asks_for(tmp_path: Path, pauses: Pauses) -> None:
    server = ScriptedApiServer(failure(429, Retry_After="9"), listed(ONE))

    assert await told(server, tmp_path, pauses, 1) == ["listed one"]
    assert pauses.taken == [9]


async def test_a_broken_watch_goes_on_where_it_was(tmp_path: Path, pauses: Pauses) -> None:
    server = ScriptedApiServer(
        listed(version="100"),
        Answer(events=[event("ADDED", ONE, "101")], breaks=True),
        failure(500),
        Answer(events=[event("ADDED", TWO, "102")]),
    )

    assert await told(server, tmp_path, pauses, 3) == ["listed", "present one", "present two"]
    assert server.asked[3].query["resourceVersion"] == "101"
    assert pauses.taken == [1, 2]


async def test_a_watch_that_is_always_closed_at_once_does_not_spin(tmp_path: Path, pauses: Pauses) -> None:
    silent = Answer(events=[])
    server = ScriptedApiServer(listed(), silent, silent, silent, Answer(events=[event("ADDED", ONE, "101")]))

    assert await told(server, tmp_path, pauses, 2) == ["listed", "present one"]
    assert pauses.taken == [1, 2, 4]


async def test_a_watch_that_is_forbidden_does_not_spin_either(tmp_path: Path, pauses: Pauses) -> None:
    forbidden = failure(403, "Forbidden")
    server = ScriptedApiServer(listed(), forbidden, listed(), forbidden, listed())

    assert await told(server, tmp_path, pauses, 3) == ["listed"] * 3
    assert pauses.taken == [1, 2]


async def test_success_makes_the_next_pause_short_again(tmp_path: Path, pauses: Pauses) -> None:
    down, alive = failure(503), Answer(events=[event("BOOKMARK", {}, "101")])
    server = ScriptedApiServer(down, down, listed(), alive, down, Answer(events=[event("ADDED", ONE, "102")]))

    assert await told(server, tmp_path, pauses, 2) == ["listed", "present one"]
    assert pauses.taken == [1, 2, 1]


async def test_an_answer_that_is_no_event_breaks_the_watch_and_nothing_else(tmp_path: Path, pauses: Pauses) -> None:
    server = ScriptedApiServer(
        listed(version="100"), Answer({"no": "event"}), Answer(events=[event("ADDED", ONE, "1")])
    )

    assert await told(server, tmp_path, pauses, 2) == ["listed", "present one"]
