"""
Requests and answers as HTTP has them; no network here.

Both transports build their requests and read their answers with these, so that
they differ in nothing but how they wait.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import httpx

from rollcage.client.errors import BadAnswer, ClientError, ServiceError, Unreachable, error_of
from rollcage.client.requests import Request

T = TypeVar("T")

# The service answers within 585 seconds, waiting for a sandbox included.
TIMES: Final = httpx.Timeout(connect=10, read=610, write=60, pool=None)

_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_REFUSED: Final = 400
_LONGEST_EXCERPT: Final = 200


def settings(url: str | None, token: str | None) -> tuple[str, Mapping[str, str]]:
    """Return the service's address and the headers of every request, from the environment where nothing is given."""
    base = url or os.environ.get("ROLLCAGE_URL", "")
    secret = os.environ.get("ROLLCAGE_TOKEN", "") if token is None else token
    if not base:
        raise ClientError("no service: give its URL, http://… or https://…, or set ROLLCAGE_URL")
    if not base.startswith(("http://", "https://")):
        raise ClientError(f"{base} is no URL of a service: those begin with http:// or https://")
    if not secret.isascii() or any(character.isspace() for character in secret):
        raise ClientError("the token has characters that no token has")
    return base.rstrip("/"), {"authorization": f"Bearer {secret}"} if secret else {}


def keywords(request: Request[Any]) -> dict[str, Any]:
    """Return a request as httpx takes it."""
    given = {"json": request.body} if request.body is not None else {}
    return {"method": request.method, "url": request.path, "params": dict(request.query), **given}


def answer(request: Request[T], response: httpx.Response) -> T:
    """Read an answer whose body was read; raises what it refuses with."""
    if response.status_code != httpx.codes.OK:
        raise refusal(response)
    try:
        return request.read(response.content)
    # Not JSON, not our fields, or no object at all: all of it means that somebody else answered.
    except (ValueError, KeyError, TypeError) as error:
        raise BadAnswer(f"{response.url.host} answered {request.path} with something else") from error


def refusal(response: httpx.Response) -> ClientError:
    """Return what an answer other than 200 means."""
    if response.status_code < _REFUSED:
        return BadAnswer(f"{response.url.host} answered with status {response.status_code}, no Rollcage gateway does")
    retry_after = _retry_after(response)
    try:
        told = response.json()
    except ValueError:
        told = None
    if not isinstance(told, dict) or "code" not in told:
        return error_of(response.status_code, None, response.text[:_LONGEST_EXCERPT], retry_after=retry_after)
    return problem(response.status_code, told, retry_after=retry_after)


@contextmanager
def reaching(url: str) -> Iterator[None]:
    """Say of a broken connection whether the service may have seen the request."""
    try:
        yield
    except httpx.TransportError as error:
        said = str(error) or type(error).__name__
        raise Unreachable(f"{url} did not answer: {said}", sent=not isinstance(error, _UNSENT)) from error


def problem(status: int, told: Mapping[str, Any], *, retry_after: float | None = None) -> ServiceError:
    """Return what the service's own problem details mean."""
    cause = told.get("cause")
    return error_of(
        status,
        str(told["code"]),
        str(told.get("detail", "")),
        cause=None if cause is None else str(cause),
        retry_after=retry_after,
    )


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None
