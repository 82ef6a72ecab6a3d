"""What is checked before a call is sent, and that it is recorded as what it was sent as."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rollcage.core.ids import BadId, RolloutId
from rollcage.rollouts.actions import Action, prepare
from rollcage.rollouts.errors import TooLarge
from rollcage.store.calls import MAX_PAYLOAD
from support.environments import environment


def action(**changes: Any) -> Action:
    made = Action(
        rollout=RolloutId("acme", "r1"),
        run="run-1",
        environment=environment(),
        call_id="c1",
        tool="shell",
        arguments='{"command": "true"}',
        within=timedelta(seconds=1),
    )
    return replace(made, **changes)


def test_the_record_has_what_the_sandbox_is_sent() -> None:
    prepared = prepare(action())

    assert prepared.body == b'{"call_id":"c1","tool":"shell","arguments":{"command":"true"}}'
    assert prepared.call.arguments == prepared.body
    assert (prepared.call.id, prepared.call.attempt) == ("c1", prepared.attempt)


def test_a_call_stays_the_same_attempt_and_another_try_is_another() -> None:
    prepared = prepare(action())

    assert prepared.call is prepared.call
    assert replace(prepared, action=action(run="run-2")).call.attempt == prepared.call.attempt
    assert prepare(action()).call.attempt != prepared.call.attempt


def test_the_same_arguments_have_the_same_hash_however_they_are_written() -> None:
    assert prepare(action()).call.hash == prepare(action(arguments={"command": "true"})).call.hash
    assert prepare(action()).call.hash != prepare(action(tool="read_file")).call.hash


def test_what_is_no_id_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(BadId):
        prepare(action(call_id="c 1"))


def test_what_the_record_would_not_take_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(TooLarge):
        prepare(action(tool="x" * MAX_PAYLOAD))
