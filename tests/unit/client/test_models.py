"""The client's models against the gateway's own: neither may know a field that the other does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rollcage.client import acts, models, requests
from rollcage.gateway.dialects.native import shapes

if TYPE_CHECKING:
    from pydantic import BaseModel

    from rollcage.client.requests import Request

PAIRS: list[tuple[type[BaseModel], type[BaseModel]]] = [
    (models.Call, shapes.CallAnswer),
    (models.Verdict, shapes.VerdictShape),
    (models.Sandbox, shapes.SandboxShape),
    (models.RolloutState, shapes.RolloutShape),
    (models.TalliedRollout, shapes.TalliedRollout),
    (models.Tally, shapes.TallyShape),
    (models.VerdictReport, shapes.VerdictAnswer),
    (models.Step, shapes.StepShape),
    (models.Run, shapes.RunShape),
    (models.Health, shapes.HealthShape),
    (models.Reservation, shapes.ReservationShape),
    (models.Environment, shapes.EnvironmentShape),
    (models.Pool, shapes.PoolShape),
    (models.Pools, shapes.PoolList),
    (models.Score, shapes.ScoreShape),
    (models.FileWritten, shapes.FileWritten),
    (models.TreeWritten, shapes.TreeWritten),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda model: model.__name__)
def test_client_and_gateway_know_the_same_fields(ours: type[BaseModel], theirs: type[BaseModel]) -> None:
    assert set(ours.model_fields) == set(theirs.model_fields)


PLACE = acts.Place("r1", "small", "run-1")
SENT: list[tuple[Request[Any], type[BaseModel]]] = [
    (acts.call(PLACE, "shell", {"command": "true"}), shapes.CallRequest),
    (acts.shell(PLACE, "true", timeout_ms=1, workdir="/", env={"A": "b"}), shapes.CallRequest),
    (acts.session_create(PLACE, "s1"), shapes.CallRequest),
    (acts.finish(PLACE), shapes.EndRequest),
    (requests.reserve("run-1", "small", 3), shapes.ReservationRequest),
    (requests.grade("r1", text="42", value={"a": 1}, item={"id": "i"}, regrade=True), shapes.GradeRequest),
    (acts.grade_here(PLACE), shapes.GradeRequest),
]


@pytest.mark.parametrize(("request_", "theirs"), SENT, ids=lambda one: getattr(one, "path", one.__class__.__name__))
def test_what_the_client_sends_the_gateway_reads(request_: Request[Any], theirs: type[BaseModel]) -> None:
    # Requests are closed to fields that nobody reads, so nothing sent is lost.
    read = theirs.model_validate(request_.body)
    assert set(request_.body) <= set(read.model_dump(by_alias=True))
