from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from rollcage.sandboxes.kubernetes.source import KubernetesSource
from rollcage.sandboxes.source import (
    Gone,
    QuotaExceeded,
    SandboxRejected,
    Seen,
    SourceThrottled,
    SourceUnavailable,
    Synced,
)
from support.api_server import EXPIRED, Answer, ScriptedApiServer, failure, listed
from support.environments import environment
from support.pods import pod, running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rollcage.sandboxes.source import SandboxSource

PODS = "/api/v1/namespaces/sandboxes/pods"
DONE = Answer({})


@asynccontextmanager
async def source_of(server: ScriptedApiServer, tmp_path: Path) -> AsyncIterator[SandboxSource]:
    async with server.served(tmp_path) as api:
        yield KubernetesSource(
            api, namespace="sandboxes", keys={"k1": "x"}, toolserver_image="toolserver:1", image_volumes=True
        )


class TestCreate:
    async def create(self, tmp_path: Path, *answers: Answer) -> ScriptedApiServer:
        server = ScriptedApiServer(*answers)
        async with source_of(server, tmp_path) as source:
            await source.create("sbx-1", environment())
        return server

    async def test_posts_the_pod(self, tmp_path: Path) -> None:
        server = await self.create(tmp_path, DONE)

        (asked,) = server.asked
        assert (asked.method, asked.path, asked.body["metadata"]["name"]) == ("POST", PODS, "sbx-1")

    async def test_takes_a_pod_that_is_there_for_the_answer(self, tmp_path: Path) -> None:
        server = await self.create(tmp_path, failure(409, "AlreadyExists"), Answer(pod(running())))

        assert [asked.method for asked in server.asked] == ["POST", "GET"]

    async def test_takes_a_pod_that_came_and_went_for_the_answer(self, tmp_path: Path) -> None:
        await self.create(tmp_path, failure(409, "AlreadyExists"), failure(404, "NotFound"))

    async def test_does_not_take_a_pod_of_somebody_else(self, tmp_path: Path) -> None:
        stranger = pod(running(), labels={"app": "web"})

        with pytest.raises(SandboxRejected, match="taken"):
            await self.create(tmp_path, failure(409, "AlreadyExists"), Answer(stranger))

    @pytest.mark.parametrize(
        ("answer", "kind"),
        [
            (failure(409, "Conflict", "resourcequotas: the object has been modified"), SourceThrottled),
            (failure(403, "Forbidden", "exceeded quota: sandboxes"), QuotaExceeded),
            (failure(404, "NotFound", "namespace not found"), SandboxRejected),
            (failure(422, "Invalid"), SandboxRejected),
            (failure(503), SourceUnavailable),
            (Answer(events=[], breaks=True), SourceUnavailable),
        ],
        ids=["a race for the quota", "no quota left", "no namespace", "an invalid pod", "a server down", "a cut line"],
    )
    async def test_tells_what_went_wrong(self, tmp_path: Path, answer: Answer, kind: type[Exception]) -> None:
        with pytest.raises(kind):
            await self.create(tmp_path, answer)


class TestDelete:
    async def test_removes_this_very_pod(self, tmp_path: Path) -> None:
        server = ScriptedApiServer(DONE)
        async with source_of(server, tmp_path) as source:
            await source.delete("sbx-1", uid="u1")

        (asked,) = server.asked
        assert (asked.method, asked.path) == ("DELETE", f"{PODS}/sbx-1")
        assert asked.body == {"gracePeriodSeconds": 1, "preconditions": {"uid": "u1"}}

    @pytest.mark.parametrize("answer", [failure(404, "NotFound"), failure(409, "Conflict")], ids=["gone", "another"])
    async def test_is_content_when_it_is_gone(self, tmp_path: Path, answer: Answer) -> None:
        async with source_of(ScriptedApiServer(answer), tmp_path) as source:
            await source.delete("sbx-1", uid="u1")


class TestLabel:
    async def test_adds_labels(self, tmp_path: Path) -> None:
        server = ScriptedApiServer(DONE)
        async with source_of(server, tmp_path) as source:
            await source.label("sbx-1", {"rollcage.dev/run": "r1"})

        (asked,) = server.asked
        assert (asked.method, asked.body) == ("PATCH", {"metadata": {"labels": {"rollcage.dev/run": "r1"}}})

    async def test_is_content_when_it_is_gone(self, tmp_path: Path) -> None:
        async with source_of(ScriptedApiServer(failure(404)), tmp_path) as source:
            await source.label("sbx-1", {"a": "b"})

    async def test_never_changes_what_a_pod_is(self, tmp_path: Path) -> None:
        async with source_of(ScriptedApiServer(), tmp_path) as source:
            with pytest.raises(ValueError, match="never change"):
                await source.label("sbx-1", {"rollcage.dev/template": "x"})


async def test_what_vanished_while_the_watch_had_expired_is_gone(tmp_path: Path) -> None:
    one, two = pod(running(), name="one", uid="u1"), pod(running(), name="two", uid="u2")
    server = ScriptedApiServer(listed(one, two), Answer(events=[EXPIRED]), listed(two))

    async with source_of(server, tmp_path) as source, source.observe() as changes:
        told = [await anext(changes) for _ in range(6)]

    assert [type(change) for change in told] == [Seen, Seen, Synced, Seen, Gone, Synced]
    gone = told[4]
    assert isinstance(gone, Gone)
    assert gone.last.name == "one"
