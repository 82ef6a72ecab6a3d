from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rollcage.sandboxes.kubernetes.refusals import Conflict, Expired, NotThere, refusal
from rollcage.sandboxes.source import QuotaExceeded, SandboxRejected, SourceThrottled, SourceUnavailable

if TYPE_CHECKING:
    from rollcage.core.errors import RollcageError

QUOTA = 'pods "sbx-1" is forbidden: exceeded quota: sandboxes, requested: pods=1, used: pods=600, limited: pods=600'
POLICY = 'pods "sbx-1" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true'
CASES: dict[str, tuple[int, str, str, type[RollcageError]]] = {
    "the quota is used up": (403, "Forbidden", QUOTA, QuotaExceeded),
    "a policy forbids it": (403, "Forbidden", POLICY, SandboxRejected),
    "the pod is invalid": (422, "Invalid", 'Pod "sbx-1" is invalid: spec.x', SandboxRejected),
    "the request is nonsense": (400, "BadRequest", "", SandboxRejected),
    "the token has expired": (401, "Unauthorized", "Unauthorized", SourceUnavailable),
    "the server is overloaded": (503, "ServiceUnavailable", "", SourceUnavailable),
    "etcd is slow": (504, "Timeout", "", SourceUnavailable),
    "a webhook is down": (500, "InternalError", "failed calling webhook", SourceUnavailable),
    "the object is not there": (404, "NotFound", "", NotThere),
    "the name is taken": (409, "AlreadyExists", "", Conflict),
    "the version is too old": (410, "Expired", "", Expired),
    "too many requests": (429, "TooManyRequests", "", SourceThrottled),
}


@pytest.mark.parametrize(("status", "reason", "message", "kind"), CASES.values(), ids=CASES.keys())
def test_a_refusal_becomes_one_of_ours(status: int, reason: str, message: str, kind: type[RollcageError]) -> None:
    error = refusal(status, {}, json.dumps({"kind": "Status", "reason": reason, "message": message}))

    assert type(error) is kind
    assert message in str(error)


def test_a_throttling_server_says_for_how_long() -> None:
    error = refusal(429, {"Retry-After": "7"}, b"{}")

    assert isinstance(error, SourceThrottled)
    assert error.retry_after == 7


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}])
def test_a_throttling_server_that_does_not_say_means_a_moment(headers: dict[str, str]) -> None:
    error = refusal(429, headers, b"slow down")

    assert isinstance(error, SourceThrottled)
    assert error.retry_after == 1


@pytest.mark.parametrize("body", [b"<html>Bad Gateway</html>", b"\xff\xfe", b"", b"[1]", b"null"])
def test_the_answer_of_a_proxy_is_understood_as_far_as_it_goes(body: bytes) -> None:
    assert isinstance(refusal(502, {}, body), SourceUnavailable)


def test_only_an_existing_object_can_be_adopted() -> None:
    race = refusal(409, {}, json.dumps({"reason": "Conflict", "message": "resourcequotas: object has been modified"}))

    assert isinstance(race, Conflict)
    assert not race.already_exists
