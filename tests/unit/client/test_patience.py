from __future__ import annotations

import pytest

from rollcage.client.errors import CLASSES, BadAnswer, ClientError, Unreachable, error_of
from rollcage.client.patience import Again, Patience
from rollcage.gateway.problems import INTERNAL, STATUSES

# Nothing was done, or doing it again is the same call.
_WORTH_ANOTHER_TRY = {
    "tenant_busy",
    "overloaded",
    "queue_full",
    "claim_timed_out",
    "no_sandbox",
    "store_unavailable",
    "store_recovering",
    "rollout_moved",
    "sandbox_unreachable",
    "still_running",
    "graders_busy",
    "grading_sandbox_failed",
}


def tried_again(again: Again, error: ClientError) -> bool:
    return Patience().wait(again, error, attempt=1, chance=0.5) is not None


@pytest.mark.parametrize("code", [*STATUSES, INTERNAL])
def test_of_all_that_the_service_refuses_with_only_what_may_pass_is_tried_again(code: str) -> None:
    error = error_of(STATUSES.get(code, 500), code, "")
    assert tried_again(Again.ALWAYS, error) is (code in _WORTH_ANOTHER_TRY)


def test_a_masked_rollout_is_never_tried_again() -> None:
    assert not tried_again(Again.ALWAYS, error_of(503, "masked", "", cause="node_lost", retry_after=1))


@pytest.mark.parametrize(
    ("again", "error", "expected"),
    [
        pytest.param(Again.ALWAYS, Unreachable("cut", sent=True), True, id="a call that may have arrived is the same"),
        pytest.param(Again.UNSENT, Unreachable("cut", sent=True), False, id="an upload that may have arrived is not"),
        pytest.param(Again.UNSENT, Unreachable("refused", sent=False), True, id="what nobody saw is sent again"),
        pytest.param(Again.UNSENT, error_of(503, "overloaded", ""), True, id="so is what was refused at the door"),
        pytest.param(Again.UNSENT, error_of(503, "store_unavailable", ""), False, id="but not what was half done"),
        pytest.param(Again.ALWAYS, error_of(502, None, "<html>"), True, id="a proxy without its service will have it"),
        pytest.param(Again.ALWAYS, error_of(500, None, ""), False, id="a fault is a fault the second time too"),
        pytest.param(Again.ALWAYS, BadAnswer("not ours"), False, id="somebody else will not turn into a gateway"),
    ],
)
def test_whether_a_request_is_sent_again(again: Again, error: ClientError, expected: bool) -> None:  # noqa: FBT001
    assert tried_again(again, error) is expected


def test_waits_grow_up_to_a_bound_and_end() -> None:
    error = error_of(503, "store_unavailable", "")
    patience = Patience(attempts=8, first_wait=1, longest_wait=8)
    waits = [patience.wait(Again.ALWAYS, error, attempt=attempt, chance=1) for attempt in range(1, 9)]
    assert waits == [1, 2, 4, 8, 8, 8, 8, None]


def test_those_who_failed_together_do_not_come_back_together() -> None:
    error = error_of(503, "store_unavailable", "", retry_after=2)
    early, late = (Patience().wait(Again.ALWAYS, error, attempt=1, chance=chance) for chance in (0, 1))
    assert (early, late) == (2, 2.5)


def test_nobody_waits_an_hour_on_a_services_word() -> None:
    error = error_of(503, "store_unavailable", "", retry_after=3600)
    wait = Patience().wait(Again.ALWAYS, error, attempt=1, chance=0)
    assert wait == 30


def test_every_code_of_the_service_has_a_class() -> None:
    assert {*STATUSES, INTERNAL} <= set(CLASSES)


def test_a_code_of_a_later_release_falls_back_on_its_status() -> None:
    error = error_of(418, "teapot", "short and stout")
    assert (type(error).__name__, error.code, str(error)) == ("Rejected", "teapot", "teapot: short and stout")
