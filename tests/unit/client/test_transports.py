"""Both transports over a scripted network: what they send, and when they send it again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rollcage.client import AsyncClient, Client
from rollcage.client.errors import BadAnswer, ClientError, ServiceError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

CALL = {
    "call_id": "c1",
    "outcome": "ok",
    "output": "hi",
    "data": {},
    "facts": {},
    "replayed": False,
    "ended": False,
    "new_in_a_later_release": 1,
}
PLACE = {"environment": "small", "run": "r"}


@dataclass
class Network:
    """Answers with one reply after the other, and keeps what was asked and how long was waited."""

    replies: list[httpx.Response | Exception]
    bodies: list[Any] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(json.loads(request.content) if request.content else None)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"code": code, "detail": "because", "status": status}, headers=headers)


async def blocking(network: Network) -> str:
    transport = httpx.MockTransport(network)
    with Client("http://service", "t", transport=transport, sleep=network.waits.append, chance=lambda: 0) as client:
        return client.rollout(**PLACE, rollout="r1").shell("true").output


async def looping(network: Network) -> str:
    transport = httpx.MockTransport(network)
    async with AsyncClient("http://service", "t", transport=transport, sleep=network.sleep, chance=lambda: 0) as client:
        return (await client.rollout(**PLACE, rollout="r1").shell("true")).output


both = pytest.mark.parametrize("calls", [blocking, looping])


@both
async def test_a_retried_call_keeps_its_id(calls: Callable[[Network], Any]) -> None:
    network = Network(
        [
            httpx.ReadTimeout("cut"),
            problem(503, "still_running", **{"retry-after": "2"}),
            httpx.Response(502, text="<html>bad gateway</html>"),
            httpx.Response(200, json=CALL),
        ]
    )
    assert await calls(network) == "hi"
    assert len({body["call_id"] for body in network.bodies}) == 1
    assert network.waits[1] == 2
    assert len(network.waits) == 3


@both
async def test_two_calls_have_two_ids(calls: Callable[[Network], Any]) -> None:
    network = Network([httpx.Response(200, json=CALL), httpx.Response(200, json=CALL)])
    await calls(network)
    await calls(network)
    first, second = (body["call_id"] for body in network.bodies)
    assert first != second


@both
@pytest.mark.parametrize("code", ["masked", "rollout_ended", "call_conflict", "internal"])
async def test_what_cannot_change_is_asked_once(calls: Callable[[Network], Any], code: str) -> None:
    network = Network([problem(503, code)])
    with pytest.raises(ServiceError) as raised:
        await calls(network)
    assert (raised.value.code, raised.value.detail, network.waits) == (code, "because", [])


@both
async def test_a_network_that_stays_away_is_given_up(calls: Callable[[Network], Any]) -> None:
    network = Network([httpx.ConnectError("refused") for _ in range(6)])
    with pytest.raises(Unreachable):
        await calls(network)
    assert (len(network.waits), network.replies) == (5, [])


@both
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param({"status_code": 200, "text": "<html>"}, id="a page"),
        pytest.param({"status_code": 200, "json": {"output": "hi"}}, id="another object"),
        pytest.param({"status_code": 200, "json": []}, id="no object"),
        pytest.param({"status_code": 302, "headers": {"location": "http://elsewhere"}}, id="a redirect"),
    ],
)
async def test_an_answer_of_somebody_else_is_not_taken_for_one(
    calls: Callable[[Network], Any], reply: dict[str, Any]
) -> None:
    with pytest.raises(BadAnswer):
        await calls(Network([httpx.Response(**reply)]))


@pytest.mark.parametrize(
    ("url", "token"),
    [pytest.param("ftp://x", "t", id="no http"), pytest.param("http://x", "a b", id="a token with a space")],
)
def test_what_cannot_be_a_service_is_refused_at_once(url: str, token: str) -> None:
    with pytest.raises(ClientError):
        Client(url, token)


def test_address_and_token_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLCAGE_URL", "http://service/")
    monkeypatch.setenv("ROLLCAGE_TOKEN", "secret")
    seen: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"environments": []})

    with Client(transport=httpx.MockTransport(reply)) as client:
        assert client.environments() == ()
    assert (str(seen[0].url), seen[0].headers["authorization"]) == (
        "http://service/v1/environments",
        "Bearer secret",
    )


def test_an_id_cannot_leave_its_place_in_the_path() -> None:
    seen: list[str] = []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path.decode())
        return problem(400, "bad_id")

    with Client("http://service", "t", transport=httpx.MockTransport(reply)) as client, pytest.raises(ServiceError):
        client.verdict("../../metrics?x")
    assert seen == ["/v1/rollouts/..%2F..%2Fmetrics%3Fx/verdict"]
