"""A sandbox belongs to the first rollout that acts in it, and to no other ever after."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rollcage.wire.messages import BOOT_HEADER
from rollcage.wire.tokens import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.local_toolserver import LocalToolserver, Start
    from support.toolserver import Answer, Toolserver

QUESTIONS: dict[str, Callable[[Toolserver], Answer]] = {
    "an earlier call": lambda s: s.earlier("nothing"),
    "the tools": lambda s: s.get("/v1/tools"),
    "the state": lambda s: s.get("/v1/state"),
    "a file": lambda s: s.download("nothing"),
    "a tree": lambda s: s.request("GET", "/v1/tree?path=."),
}
ACTIONS: dict[str, Callable[[Toolserver], Answer]] = {
    "a call": lambda s: s.post("shell", command="true"),
    "a malformed call": lambda s: s.post("shell"),
    "a streamed call": lambda s: s.request("POST", "/v1/calls/stream", s.body("shell", "x", {"command": "true"})),
    "an upload": lambda s: s.upload("file", b"x"),
    "an uploaded tree": lambda s: s.upload_tree("tree", bytes(1024)),
    "a seal": lambda s: s.seal(),
}
BAD_ACTIONS: dict[str, Callable[[Toolserver], Answer]] = {
    "a call that is none": lambda s: s.request("POST", "/v1/calls", b"{}"),
    "a seal that says more": lambda s: s.request("POST", "/v1/seal", b"{}"),
    "an inspector's seal": lambda s: s.request(
        "POST", "/v1/seal", b"", {"Authorization": s.authorization(Scope.INSPECT)}
    ),
    "an upload without a path": lambda s: s.request("PUT", "/v1/files", b""),
    "a compressed call": lambda s: s.request(
        "POST", "/v1/calls", s.body("shell", "x", {}), {"Content-Encoding": "gzip"}
    ),
    "a call for another boot": lambda s: s.request("POST", "/v1/calls", b"{}", {BOOT_HEADER: "x"}),
    "an inspector's call": lambda s: s.request(
        "POST", "/v1/calls", s.body("shell", "x", {}), {"Authorization": s.authorization(Scope.INSPECT)}
    ),
}


def test_a_sandbox_is_born_unbound(sandbox: LocalToolserver) -> None:
    assert sandbox.state().bound_to is None


@pytest.mark.parametrize("act", ACTIONS.values(), ids=ACTIONS.keys())
def test_the_first_rollout_that_acts_binds_it(sandbox: LocalToolserver, act: Callable[[Toolserver], Answer]) -> None:
    assert act(sandbox.of("trace_first")).status == 200

    assert sandbox.state().bound_to == "trace_first"
    assert sandbox.of("trace_second").post("shell", command="touch x").refusal == (409, "bound_elsewhere")


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_asking_does_not_bind(sandbox: LocalToolserver, ask: Callable[[Toolserver], Answer]) -> None:
    ask(sandbox.of("trace_first"))

    assert sandbox.state().bound_to is None


@pytest.mark.parametrize("act", BAD_ACTIONS.values(), ids=BAD_ACTIONS.keys())
def test_a_refused_request_does_not_bind(sandbox: LocalToolserver, act: Callable[[Toolserver], Answer]) -> None:
    assert act(sandbox).status >= 400

    assert sandbox.state().bound_to is None


@pytest.mark.parametrize("act", (ACTIONS | QUESTIONS).values(), ids=(ACTIONS | QUESTIONS).keys())
def test_another_rollout_gets_nothing_at_all(sandbox: LocalToolserver, act: Callable[[Toolserver], Answer]) -> None:
    sandbox.shell("true")

    assert act(sandbox.of("trace_other")).refusal == (409, "bound_elsewhere")
    assert sandbox.state().counters.misroutes_refused == 1


def test_an_inspector_may_look_whoever_it_belongs_to(sandbox: LocalToolserver) -> None:
    sandbox.shell("true")

    assert sandbox.of("trace_other").get("/v1/state", Scope.INSPECT).status == 200


def test_of_eight_rollouts_at_once_exactly_one_gets_it(sandbox: LocalToolserver) -> None:
    rollouts = [sandbox.of(f"trace_{n}") for n in range(8)]

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda rollout: rollout.post("shell", command="echo x >> acted"), rollouts))

    assert sorted(answer.status for answer in answers) == [200] + [409] * 7
    winner = rollouts[[answer.status for answer in answers].index(200)]
    assert sandbox.state().bound_to == winner.rollout
    assert winner.shell("cat acted").output == "x\n"


def test_answers_name_their_boot_and_it_is_new_after_a_restart(start: Start) -> None:
    first, second = start(), start()

    boots = {first.get("/v1/state").boot, second.get("/v1/state").boot}

    assert None not in boots
    assert len(boots) == 2


def test_a_call_for_an_earlier_boot_is_refused_and_runs_nothing(sandbox: LocalToolserver) -> None:
    body = sandbox.body("shell", "a", {"command": "touch ran"})
    boot = sandbox.state().boot_id

    assert sandbox.request("POST", "/v1/calls", body, {BOOT_HEADER: "another"}).refusal == (409, "restarted")
    assert sandbox.state().journal.calls == 0
    assert sandbox.request("POST", "/v1/calls", body, {BOOT_HEADER: boot}).status == 200
