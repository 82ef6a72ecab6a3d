"""Shell sessions: what persists, what ends, and how a broken one is replaced."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from rollcage.wire.messages import OutcomeClass, Result
from support.local_toolserver import alive
from support.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from support.local_toolserver import LocalToolserver


class Session:
    """A session under a name."""

    def __init__(self, sandbox: LocalToolserver, name: str) -> None:
        self.sandbox = sandbox
        self.name = name

    def run(self, command: str, **arguments: Any) -> Result:
        return self.sandbox.call("session_run", session=self.name, command=command, **arguments)

    def interrupt(self) -> Result:
        return self.sandbox.call("session_interrupt", session=self.name)

    def close(self) -> Result:
        return self.sandbox.call("session_close", session=self.name)


@pytest.fixture
def session(sandbox: LocalToolserver) -> Session:
    created = sandbox.call("session_create")
    return Session(sandbox, created.data["session"])


def test_the_directory_persists(session: Session) -> None:
    session.run("cd /usr")

    assert session.run("pwd").output == "/usr\n"


def test_variables_and_functions_persist(session: Session) -> None:
    session.run("word=hello; export SHOUTED=HELLO; greet() { echo $word $1; }")

    assert session.run('greet you; sh -c "echo \\$SHOUTED"').output == "hello you\nHELLO\n"


def test_the_exit_code_persists_for_the_next_command(session: Session) -> None:
    failed = session.run("(exit 7)")

    assert (failed.outcome, failed.facts.exit_code) == (OutcomeClass.FAILED, 7)
    assert session.run("echo $?").output == "7\n"


def test_background_processes_live_until_the_session_is_closed(session: Session) -> None:
    word = "123456.789"
    session.run(f"sleep {word} &")
    # The shell does not wait until what it forked has become what it is.
    until(lambda: len(alive(word)) == 1)
    session.run("true")
    assert len(alive(word)) == 1

    session.close()

    assert alive(word) == []


def test_what_a_background_process_printed_comes_with_the_next_command(session: Session, workdir: Path) -> None:
    session.run("(while [ ! -e go ]; do sleep 0.01; done; echo from behind; touch done) &")
    (workdir / "go").touch()
    until((workdir / "done").exists)

    assert "from behind\n" in session.run("true").output


def test_standard_input_is_at_its_end(session: Session) -> None:
    assert session.run("cat; echo end").output == "end\n"


def test_sessions_do_not_see_each_other(sandbox: LocalToolserver, session: Session) -> None:
    sandbox.call("session_create", session="other", env={"WORD": "mine"}, workdir="/usr")
    session.run("WORD=yours")

    assert Session(sandbox, "other").run("echo $WORD; pwd").output == "mine\n/usr\n"


def test_a_time_limit_interrupts_the_command_and_keeps_the_session(session: Session) -> None:
    session.run("kept=yes")

    late = session.run("sleep 100", timeout_ms=200)

    assert late.outcome == OutcomeClass.TIMED_OUT
    assert late.facts.timed_out
    assert session.run("echo $kept").output == "yes\n"


def test_a_command_that_ignores_interrupts_is_killed_and_the_session_goes_on(session: Session) -> None:
    late = session.run("sh -c 'trap \"\" INT TERM; while :; do sleep 1; done'", timeout_ms=200)

    assert late.outcome == OutcomeClass.TIMED_OUT
    assert session.run("echo here").output == "here\n"


def test_a_running_command_can_be_interrupted(session: Session, workdir: Path) -> None:
    with ThreadPoolExecutor() as pool:
        # Made by the shell itself: one that is interrupted while a program of it ends well goes on with the next.
        running = pool.submit(session.run, ": > begun; sleep 100; echo not reached")
        until((workdir / "begun").exists)
        interrupted = session.interrupt()
        result = running.result(timeout=30)

    assert interrupted.outcome == OutcomeClass.OK
    assert result.outcome == OutcomeClass.FAILED
    assert result.facts.exit_code == 130
    assert "not reached" not in result.output
    assert session.run("echo here").output == "here\n"


def test_interrupting_an_idle_session_says_that_nothing_runs(session: Session) -> None:
    assert session.interrupt().output == f"nothing runs in session {session.name}"


@pytest.mark.parametrize("end", ["exit 3", "exec false", "kill -KILL $$"])
def test_a_command_that_ends_the_shell_is_reported_and_the_name_is_free_again(session: Session, end: str) -> None:
    ended = session.run(end)

    assert ended.outcome == OutcomeClass.FAILED
    assert "session_create" in ended.output
    assert session.run("echo x").outcome == OutcomeClass.FAILED
    assert session.sandbox.call("session_create", session=session.name).outcome == OutcomeClass.OK
    assert session.run("echo back").output == "back\n"


@pytest.mark.parametrize("broken", ["if", "echo 'open", "((", "cat <<EOF\nno end", "}"])
def test_a_syntax_error_does_not_break_the_session(session: Session, broken: str) -> None:
    assert session.run(broken, timeout_ms=5000).outcome in {OutcomeClass.FAILED, OutcomeClass.OK}

    assert session.run("echo here").output == "here\n"


def test_a_forged_report_does_not_end_a_command(session: Session) -> None:
    result = session.run("for fd in 3 4 5; do echo 'deadbeef 0' >&$fd; done 2> /dev/null; echo real")

    assert result.output == "real\n"


def test_commands_of_one_session_run_one_after_the_other(session: Session) -> None:
    with ThreadPoolExecutor(4) as pool:
        for result in pool.map(session.run, ["n=$((n+1)); sleep 0.05; echo $n"] * 4):
            assert result.outcome == OutcomeClass.OK

    assert session.run("echo $n").output == "4\n"


def test_a_session_that_does_not_exist_is_told_which_do(sandbox: LocalToolserver, session: Session) -> None:
    result = sandbox.call("session_run", session="nowhere", command="true")

    assert result.outcome == OutcomeClass.FAILED
    assert session.name in result.output


def test_a_name_that_is_taken_is_refused(sandbox: LocalToolserver) -> None:
    sandbox.call("session_create", session="mine")

    assert sandbox.call("session_create", session="mine").outcome == OutcomeClass.FAILED


@pytest.mark.parametrize("name", ["../x", "", "a b", "x" * 65])
def test_a_bad_name_is_malformed(sandbox: LocalToolserver, name: str) -> None:
    assert sandbox.call("session_create", session=name).outcome == OutcomeClass.MALFORMED


def test_the_number_of_sessions_is_bounded(sandbox: LocalToolserver) -> None:
    for _ in range(16):
        assert sandbox.call("session_create").outcome == OutcomeClass.OK

    result = sandbox.call("session_create")

    assert result.outcome == OutcomeClass.FAILED
    assert "session_close" in result.output
