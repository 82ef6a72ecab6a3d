from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.cli.definition import apply, remove
from rollcage.sandboxes.kubernetes.refusals import Conflict, NotThere
from support.api_server import Answer, ScriptedApiServer, failure

if TYPE_CHECKING:
    from pathlib import Path

DEFINITION = {"metadata": {"name": "environments.rollcage.dev"}, "spec": {"group": "rollcage.dev"}}
PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/environments.rollcage.dev"


def _there(version: str) -> Answer:
    return Answer({"metadata": {"resourceVersion": version}, "spec": {"old": True}})


async def test_the_definition_is_replaced_as_a_whole(tmp_path: Path) -> None:
    server = ScriptedApiServer(_there("7"), Answer({}))

    async with server.served(tmp_path) as api:
        await apply(api, DEFINITION)

    put = server.asked[-1]
    assert (put.method, put.path, put.body["spec"]) == ("PUT", PATH, DEFINITION["spec"])
    assert put.body["metadata"]["resourceVersion"] == "7"


async def test_somebody_who_writes_at_the_same_time_is_waited_for(tmp_path: Path) -> None:
    server = ScriptedApiServer(_there("7"), failure(409, "Conflict"), _there("8"), Answer({}))

    async with server.served(tmp_path) as api:
        await apply(api, DEFINITION)

    assert server.asked[-1].body["metadata"]["resourceVersion"] == "8"


async def test_a_conflict_that_does_not_end_is_an_error(tmp_path: Path) -> None:
    server = ScriptedApiServer(*[_there("7"), failure(409, "Conflict")] * 5)

    async with server.served(tmp_path) as api:
        with pytest.raises(Conflict):
            await apply(api, DEFINITION)


async def test_a_definition_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    async with ScriptedApiServer(failure(404, "NotFound")).served(tmp_path) as api:
        with pytest.raises(NotThere):
            await apply(api, DEFINITION)


async def test_removing_what_is_gone_is_no_error(tmp_path: Path) -> None:
    server = ScriptedApiServer(failure(404, "NotFound"))

    async with server.served(tmp_path) as api:
        await remove(api, "environments.rollcage.dev")

    assert [(one.method, one.path) for one in server.asked] == [("DELETE", PATH)]
