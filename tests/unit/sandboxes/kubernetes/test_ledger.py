from __future__ import annotations

from typing import Any

from rollcage.core.endings import EndCause
from rollcage.sandboxes.kubernetes.ledger import Ledger
from rollcage.sandboxes.kubernetes.watching import Listed, Present, Removed, Update
from rollcage.sandboxes.source import Change, Gone, Phase, Seen, Synced
from support.pods import FINISHED, ended, pod, running

DELETED: dict[str, Any] = {"deletionTimestamp": FINISHED, "deletionGracePeriodSeconds": 1}
ONE = pod(running(), name="one", uid="u1")
TWO = pod(running(), name="two", uid="u2")


def short(change: Change) -> str:
    if isinstance(change, Synced):
        return "synced"
    sandbox = change.sandbox if isinstance(change, Seen) else change.last
    return f"{type(change).__name__.lower()} {sandbox.name}/{sandbox.uid}"


def told(ledger: Ledger, update: Update) -> list[str]:
    return [short(change) for change in ledger.changes(update)]


def test_a_list_tells_of_everything_and_then_that_it_did() -> None:
    assert told(Ledger(), Listed((ONE, TWO))) == ["seen one/u1", "seen two/u2", "synced"]


def test_what_vanished_between_two_lists_is_gone() -> None:
    ledger = Ledger()
    told(ledger, Listed((ONE, TWO)))

    assert told(ledger, Listed((TWO,))) == ["seen two/u2", "gone one/u1", "synced"]
    assert told(ledger, Listed((TWO,))) == ["seen two/u2", "synced"]


def test_what_was_removed_is_gone_once() -> None:
    ledger = Ledger()
    told(ledger, Listed((ONE,)))

    assert told(ledger, Removed(ONE)) == ["gone one/u1"]
    assert told(ledger, Listed(())) == ["synced"]


def test_a_successor_of_the_same_name_does_not_hide_that_the_first_is_gone() -> None:
    ledger = Ledger()
    told(ledger, Listed((ONE,)))

    assert told(ledger, Present(pod(running(), name="one", uid="u9"))) == ["gone one/u1", "seen one/u9"]


def ending_after(*updates: Update) -> tuple[Phase, EndCause | None]:
    ledger = Ledger()
    last: list[Change] = []
    for update in updates:
        last = list(ledger.changes(update))
    change = last[-1]
    assert isinstance(change, Seen | Gone)
    sandbox = change.sandbox if isinstance(change, Seen) else change.last
    return sandbox.phase, sandbox.ending.cause if sandbox.ending else None


def test_who_was_dead_already_was_not_killed_by_being_removed() -> None:
    # The same second: from the pod alone nobody could tell what came first.
    dead = pod(ended(137, "OOMKilled"))
    removed = pod(ended(137, "OOMKilled"), **DELETED)

    assert ending_after(Removed(removed)) == (Phase.ENDED, EndCause.DELETED)
    assert ending_after(Present(dead), Present(removed)) == (Phase.ENDED, EndCause.OUT_OF_MEMORY)
    assert ending_after(Present(dead), Removed(removed)) == (Phase.ENDED, EndCause.OUT_OF_MEMORY)


def test_a_cause_that_comes_late_is_taken_over() -> None:
    at_first = pod(ended(137, "Error"))
    then = pod(ended(137, "Error", reason="Evicted", conditions=[{"type": "Initialized", "status": "True"}]))

    assert ending_after(Present(at_first), Present(then)) == (Phase.ENDED, EndCause.OWN_STORAGE_LIMIT)


def test_a_sandbox_that_was_deleted_while_running_ended_by_that() -> None:
    assert ending_after(Present(ONE), Removed(pod(running(), name="one", uid="u1", **DELETED))) == (
        Phase.ENDED,
        EndCause.DELETED,
    )
