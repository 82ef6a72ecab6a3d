"""Watching a call over a scripted network: what is seen, what is missed, and that it is the same call throughout."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rollcage.client import AsyncClient, Client, Gap, Output
from rollcage.client.errors import BadAnswer, Masked, NotFound, Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from rollcage.client.models import Call
    from rollcage.client.watching import Piece

    Seen = tuple[list[Piece], Call]
    Watch = Callable[..., Coroutine[Any, Any, Seen]]

RESULT = {"call_id": "c1", "outcome": "ok", "output": "hi", "data": {}, "facts": {}, "replayed": False, "ended": False}
DONE = ("result", RESULT)


def said(text: str) -> tuple[str, Any]:
    return "output", {"stream": "stdout", "text": text}


@dataclass
class Stream(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Sends events in pieces of a few bytes, then ends, or breaks."""

    events: list[tuple[str, Any]]
    breaks: bool = False
    size: int = 7

    def __iter__(self) -> Iterator[bytes]:
        lines = [f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n" for name, data in self.events]
        whole = "".join([": alive\n\n", *lines]).encode()
        yield from (whole[at : at + self.size] for at in range(0, len(whole), self.size))
        if self.breaks:
            raise httpx.ReadError("cut")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece


@dataclass
class Network:
    """Answers with one reply after the other, and keeps what was asked."""

    replies: list[Stream | httpx.Response | Exception]
    asked: list[tuple[str, str]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append((request.url.path, json.loads(request.content)["call_id"]))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        if isinstance(reply, Stream):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=reply)
        return reply

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


async def blocking(network: Network, *, most: int = 1000) -> Seen:
    transport = httpx.MockTransport(network)
    pieces: list[Piece] = []
    with (
        Client("http://service", "t", transport=transport, sleep=network.waits.append, chance=lambda: 0) as client,
        client.rollout("small", rollout="r1").watch_shell("make", call_id="c1") as watched,
    ):
        for piece in watched:
            pieces.append(piece)
            if len(pieces) == most:
                break
        return pieces, watched.result()


async def looping(network: Network, *, most: int = 1000) -> Seen:
    transport = httpx.MockTransport(network)
    pieces: list[Piece] = []
    async with (
        AsyncClient("http://service", "t", transport=transport, sleep=network.sleep, chance=lambda: 0) as client,
        client.rollout("small", rollout="r1").watch_shell("make", call_id="c1") as watched,
    ):
        async for piece in watched:
            pieces.append(piece)
            if len(pieces) == most:
                break
        return pieces, await watched.result()


both = pytest.mark.parametrize("watch", [blocking, looping])


def texts(pieces: list[Piece]) -> list[str | int]:
    return [piece.text if isinstance(piece, Output) else piece.bytes for piece in pieces]


@both
async def test_output_comes_before_the_result(watch: Watch) -> None:
    network = Network([Stream([said("one\n"), ("output", {"stream": "stderr", "text": "two\n"}), DONE])])
    pieces, result = await watch(network)
    assert pieces == [Output("stdout", b"one\n", "one\n"), Output("stderr", b"two\n", "two\n")]
    assert (result.output, network.asked) == ("hi", [("/v1/rollouts/r1/calls/stream", "c1")])


@both
async def test_a_broken_stream_is_taken_up_again_and_nothing_comes_twice(watch: Watch) -> None:
    # Whoever joins late is told of everything before as a gap: here 4 bytes were seen and 6 more were not.
    network = Network(
        [
            Stream([said("one\n")], breaks=True),
            httpx.Response(502, text="<html>bad gateway</html>"),
            httpx.ConnectError("refused"),
            Stream([("gap", {"bytes": 10}), said("end\n")]),
            Stream([("gap", {"bytes": 14}), said("!\n"), DONE]),
        ]
    )
    pieces, result = await watch(network)
    assert texts(pieces) == ["one\n", 6, "end\n", "!\n"]
    assert pieces[1] == Gap(6)
    assert result.outcome == "ok"
    assert {call for _, call in network.asked} == {"c1"}


@both
async def test_a_gap_in_the_middle_counts_for_itself(watch: Watch) -> None:
    network = Network([Stream([said("one\n"), ("gap", {"bytes": 3}), said("two\n"), DONE])])
    assert texts((await watch(network))[0]) == ["one\n", 3, "two\n"]


@both
async def test_whoever_stops_watching_gets_the_result_by_its_id(watch: Watch) -> None:
    network = Network([Stream([said("one\n"), said("two\n"), DONE]), httpx.Response(200, json=RESULT)])
    pieces, result = await watch(network, most=1)
    assert (texts(pieces), result.output) == (["one\n"], "hi")
    assert network.asked == [("/v1/rollouts/r1/calls/stream", "c1"), ("/v1/rollouts/r1/calls", "c1")]


@both
async def test_a_character_that_is_cut_in_two_comes_whole_and_no_byte_is_lost(watch: Watch) -> None:
    halves = [("output", {"stream": "stdout", "base64": text}) for text in ("w6TD", "tg==")]  # ä, half of ö | the rest
    pieces, _ = await watch(Network([Stream([*halves, DONE])]))
    assert pieces == [Output("stdout", b"\xc3\xa4\xc3", "ä"), Output("stdout", b"\xb6", "ö")]


@both
async def test_line_breaks_of_a_models_own_do_not_break_an_event(watch: Watch) -> None:
    odd = "a\u2028b\u2029c\x85d\r\ne\x0bf"
    pieces, _ = await watch(Network([Stream([said(odd), DONE])]))
    assert texts(pieces) == [odd]


@both
async def test_the_services_refusal_is_raised_with_its_cause(watch: Watch) -> None:
    problem = {"status": 503, "code": "masked", "detail": "gone", "cause": "node_lost"}
    network = Network([Stream([said("one\n"), ("error", problem)])])
    with pytest.raises(Masked) as raised:
        await watch(network)
    assert (raised.value.cause, network.waits) == ("node_lost", [])


@both
async def test_a_call_that_still_runs_is_asked_for_again(watch: Watch) -> None:
    network = Network([Stream([("error", {"status": 503, "code": "still_running", "detail": ""})]), Stream([DONE])])
    assert (await watch(network))[1].ok
    assert len(network.waits) == 1


@both
async def test_a_refusal_before_any_event_is_raised(watch: Watch) -> None:
    network = Network([httpx.Response(404, json={"code": "no_such_route", "detail": "", "status": 404})])
    with pytest.raises(NotFound):
        await watch(network)


@both
async def test_a_stream_that_never_gets_further_is_given_up(watch: Watch) -> None:
    network = Network([Stream([said("one\n")]), *(Stream([("gap", {"bytes": 4})]) for _ in range(5))])
    with pytest.raises(Unreachable) as raised:
        await watch(network)
    assert raised.value.sent
    assert len(network.waits) == 5


@both
async def test_a_stream_of_something_else_is_not_taken_for_one(watch: Watch) -> None:
    with pytest.raises(BadAnswer):
        await watch(Network([Stream([("output", ["no", "object"])])]))
