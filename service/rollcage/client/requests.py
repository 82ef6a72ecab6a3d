"""
Everything that can be asked of the service, described once.

A description is a value: what is sent, whether it may be sent again, and how
its answer is read. Sending it, at once or in a loop, is for the two transports.
"""

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from rollcage.client import models
from rollcage.client.patience import Again

T = TypeVar("T")
Model = TypeVar("Model", bound=models.Answer)

Form = Literal["chat_completions", "responses", "job"]
Label = Literal["all", "active", "ended", "masked"]


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """One request, and how its answer is read."""

    method: str
    path: str
    read: Callable[[bytes], T]
    query: Mapping[str, str | int] = field(default_factory=dict)
    body: Any = None
    again: Again = Again.ALWAYS


@dataclass(frozen=True, slots=True)
class Paged(Generic[T]):
    """A listing, page by page."""

    request: Request[models.Page[T]]

    def after(self, cursor: str | None) -> Request[models.Page[T]]:
        """Return the request for the page after *cursor*, or for the first."""
        first = self.request
        query = {**first.query, **({"cursor": cursor} if cursor else {})}
        return Request(first.method, first.path, first.read, query)


def new_id() -> str:
    """Return an id that nobody else has."""
    return secrets.token_hex(16)


def environments() -> Request[tuple[models.Environment, ...]]:
    """Return all environments, by name."""
    return Request("GET", "/v1/environments", partial(_list, "environments", models.Environment))


def environment(name: str) -> Request[models.Environment]:
    """Return one environment."""
    return Request("GET", f"/v1/environments/{part(name)}", models.Environment.model_validate_json)


def tools(
    environment: str, *, form: Form = "chat_completions", run: str = "default"
) -> Request[tuple[dict[str, Any], ...]]:
    """Return an environment's tools as datasets, the Responses API or an Agent RFT job want them."""
    path = f"/v1/environments/{part(environment)}/tools"
    return Request("GET", path, _tools, {"form": form, "run": run})


def rollouts(*, run: str | None = None, label: Label = "all", page: int = 100) -> Paged[models.RolloutState]:
    """Return rollouts, newest first, fetched as they are asked for."""
    query: dict[str, str | int] = {"label": label, "limit": page, **({"run": run} if run else {})}
    return Paged(Request("GET", "/v1/rollouts", partial(_page, "rollouts", models.RolloutState), query))


def tallied(run: str, *, page: int = 100) -> Paged[models.TalliedRollout]:
    """Return a run's rollouts with what their calls add up to, newest first, fetched as they are asked for."""
    read = partial(_page, "rollouts", models.TalliedRollout)
    return Paged(Request("GET", f"/v1/runs/{part(run)}/rollouts", read, {"limit": page}))


def rollout_state(rollout: str) -> Request[models.RolloutState]:
    """Return how a rollout stands."""
    return Request("GET", rollout_path(rollout), models.RolloutState.model_validate_json)


def verdict(rollout: str) -> Request[models.VerdictReport]:
    """Return a rollout's verdict, with the evidence."""
    return Request("GET", f"{rollout_path(rollout)}/verdict", models.VerdictReport.model_validate_json)


def trajectory(rollout: str, *, page: int = 100) -> Paged[models.Step]:
    """Return a rollout's calls in the order in which they began, fetched as they are asked for."""
    read = partial(_page, "steps", models.Step)
    return Paged(Request("GET", f"{rollout_path(rollout)}/trajectory", read, {"limit": page}))


def abandon(rollout: str) -> Request[models.RolloutState]:
    """End a rollout that nobody wants any more; its record stays."""
    return Request("DELETE", rollout_path(rollout), models.RolloutState.model_validate_json)


def runs(*, limit: int = 100) -> Request[tuple[models.Run, ...]]:
    """Return the latest runs with their figures."""
    return Request("GET", "/v1/runs", partial(_list, "runs", models.Run), {"limit": limit})


def health(run: str) -> Request[models.Health]:
    """Say whether a step of the run is safe to train on."""
    return Request("GET", f"/v1/runs/{part(run)}/health", models.Health.model_validate_json)


def reserve(
    run: str, environment: str, count: int, *, reservation: str | None = None, ttl_seconds: int = 600
) -> Request[models.Reservation]:
    """Set sandboxes aside for a step to come; the same reservation id again changes nothing."""
    body = {"id": reservation or new_id(), "count": count, "ttl_seconds": ttl_seconds}
    path = f"/v1/runs/{part(run)}/reservations/{part(environment)}"
    return Request("PUT", path, models.Reservation.model_validate_json, body=body)


def pools() -> Request[models.Pools]:
    """Return how full the pools are."""
    return Request("GET", "/v1/pools", models.Pools.model_validate_json)


def readiness() -> Request[models.Readiness]:
    """Say whether the gateway serves trainers; needs no token."""
    return Request("GET", "/readyz", models.Readiness.model_validate_json)


def grade(
    rollout: str,
    *,
    text: str = "",
    value: Any = None,
    item: Mapping[str, Any] | None = None,
    environment: str | None = None,
    run: str | None = None,
    regrade: bool = False,
) -> Request[models.Score]:
    """
    Ask for a rollout's score, which ends it: of its final answer, as *text* and JSON *value*, to a dataset *item*.

    The same again gets the same score, unless *regrade* asks for another.
    """
    answer = {"text": text, "json": value}
    body = given(item=item, environment=environment, run=run, answer=answer, regrade=regrade)
    again = Again.UNSENT if regrade else Again.ALWAYS
    return Request("POST", f"{rollout_path(rollout)}/grade", models.Score.model_validate_json, body=body, again=again)


def score(rollout: str) -> Request[models.Score]:
    """Return the score that a rollout has, with its parts."""
    return Request("GET", f"{rollout_path(rollout)}/score", models.Score.model_validate_json)


def rollout_path(rollout: str) -> str:
    """Return where a rollout is found."""
    return f"/v1/rollouts/{part(rollout)}"


def given(**arguments: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in arguments.items() if value is not None}


def part(name: str) -> str:
    """Return a name as one part of a path, whatever is in it."""
    return quote(name, safe="")


def _list(name: str, model: type[Model], body: bytes) -> tuple[Model, ...]:
    return tuple(_each(model, json.loads(body)[name]))


def _page(name: str, model: type[Model], body: bytes) -> models.Page[Model]:
    told = json.loads(body)
    return models.Page(items=tuple(_each(model, told[name])), cursor=told["cursor"])


def _each(model: type[Model], told: Iterable[Any]) -> Iterable[Model]:
    return map(model.model_validate, told)


def _tools(body: bytes) -> tuple[dict[str, Any], ...]:
    return tuple(json.loads(body)["tools"])
