"""Calls that arrive at the same time: in parallel, in order, and too many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rollcage.wire.messages import OutcomeClass
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import LocalToolserver, Start


def test_eight_calls_run_at_the_same_time(sandbox: LocalToolserver) -> None:
    """Each waits until it has seen the seven others."""
    meet = "touch met.$N; until [ $(ls met.* | wc -l) = 8 ]; do sleep 0.01; done; echo $N"

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: sandbox.shell(meet, env={"N": str(n)}, timeout_ms=20_000), range(8)))

    assert [result.output for result in results] == [f"{n}\n" for n in range(8)]


def test_in_serial_order_one_runs_after_the_other_as_they_came(start: Start, workdir: Path) -> None:
    sandbox = start(order="serial")
    wait = "until [ -e go ]; do sleep 0.01; done; echo $N >> order; [ ! -e busy ] && touch busy && rm busy"

    with ThreadPoolExecutor(6) as pool:
        calls = []
        for n in range(6):
            calls.append(pool.submit(sandbox.shell, wait, env={"N": str(n)}))
            until(lambda expected=n + 1: sandbox.state().journal.calls == expected)  # type: ignore[misc]
        (workdir / "go").touch()
        results = [call.result(timeout=30) for call in calls]

    assert [result.outcome for result in results] == [OutcomeClass.OK] * 6
    assert (workdir / "order").read_text().split() == list("012345")


def test_what_is_beyond_the_limits_is_refused_and_can_be_sent_again(start: Start, workdir: Path) -> None:
    sandbox = start(limits={"concurrent_calls": 1, "waiting_calls": 1})
    wait = "until [ -e go ]; do sleep 0.01; done"

    with ThreadPoolExecutor() as pool:
        first = pool.submit(sandbox.shell, wait)
        until(lambda: sandbox.state().journal.calls == 1)
        second = pool.submit(sandbox.shell, wait)
        until(lambda: sandbox.state().journal.calls == 2)

        assert sandbox.post("shell", call_id="third", command="echo x").refusal == (503, "busy")
        assert sandbox.call("shell").outcome == OutcomeClass.MALFORMED
        assert sandbox.state().counters.busy == 1

        (workdir / "go").touch()
        assert first.result(timeout=30).outcome == OutcomeClass.OK
        assert second.result(timeout=30).outcome == OutcomeClass.OK

    assert sandbox.shell("echo x", call_id="third").output == "x\n"


def test_an_interrupt_never_waits_behind_what_it_interrupts(start: Start, workdir: Path) -> None:
    sandbox = start(order="serial")
    sandbox.call("session_create", session="s")

    with ThreadPoolExecutor() as pool:
        # From the very process that then waits: an interrupt that meets a program which is ending well is lost on bash.
        command = "sh -c ': > begun; exec sleep 100'"
        running = pool.submit(sandbox.call, "session_run", session="s", command=command)
        until((workdir / "begun").exists)
        sandbox.call("session_interrupt", session="s")

        assert running.result(timeout=30).facts.exit_code == 130
