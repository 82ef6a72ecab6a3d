from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rollcage.wiring.toolserver import NoToolserver, find_toolserver

if TYPE_CHECKING:
    from pathlib import Path

# Notes that it was called, and makes what it is asked to.
GO = """#!/bin/sh
echo called >> "$0.log"
while [ "$1" != -o ]; do shift; done
echo program > "$2"
"""
BROKEN_GO = "#!/bin/sh\necho main.go:1: no sense >&2\nexit 1\n"


class Machine:
    """A machine with sources, a compiler and a cache."""

    def __init__(self, directory: Path) -> None:
        self.sources = directory / "sources"
        self.sources.mkdir()
        (self.sources / "go.mod").write_text("module toolserver")
        self.tools = directory / "bin"
        self.tools.mkdir()
        self.variables = {"PATH": f"{self.tools}:/usr/bin:/bin", "ROLLCAGE_CACHE": str(directory / "cache")}
        self.install(GO)

    def install(self, script: str) -> None:
        (self.tools / "go").write_text(script)
        (self.tools / "go").chmod(0o755)

    def find(self, **more: str) -> Path:
        return find_toolserver(sources=self.sources, variables={**self.variables, **more})

    def compilations(self) -> int:
        return len((self.tools / "go.log").read_text().splitlines())


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("PATH", made.variables["PATH"])
    return made


def test_it_is_compiled_once_for_each_state_of_the_sources(machine: Machine) -> None:
    first = machine.find()
    again = machine.find()
    (machine.sources / "main.go").write_text("package main")
    changed = machine.find()

    assert first.read_text() == "program\n"
    assert again == first != changed
    assert machine.compilations() == 2


def test_a_compiler_that_fails_is_quoted_and_leaves_nothing_to_find(machine: Machine) -> None:
    machine.install(BROKEN_GO)
    with pytest.raises(NoToolserver, match="no sense"):
        machine.find()

    machine.install(GO)
    assert machine.find().read_text() == "program\n"


def test_a_package_without_sources_says_what_is_missing(machine: Machine) -> None:
    (machine.sources / "go.mod").unlink()

    with pytest.raises(NoToolserver, match="Run from a clone"):
        machine.find()


def test_a_program_that_is_named_is_taken(machine: Machine) -> None:
    given = machine.tools / "go"

    assert machine.find(ROLLCAGE_TOOLSERVER=str(given)) == given


def test_a_name_that_is_no_program_is_an_error(machine: Machine) -> None:
    with pytest.raises(NoToolserver, match="not a program"):
        machine.find(ROLLCAGE_TOOLSERVER=str(machine.sources / "go.mod"))


def test_a_cache_that_cannot_be_written_names_the_variable(machine: Machine) -> None:
    with pytest.raises(NoToolserver, match="ROLLCAGE_CACHE"):
        machine.find(ROLLCAGE_CACHE=str(machine.sources / "go.mod"))
