from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lab.machine import missing_capabilities

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("bounding", "missing"),
    [
        pytest.param("000001ffffffffff", [], id="nothing is missing"),
        pytest.param("000001fffeffffff", ["SYS_RESOURCE"], id="one that we know by name"),
        pytest.param("000001fffffffffe", ["#0"], id="one that we know by number only"),
    ],
)
def test_capabilities_outside_the_bounding_set_are_missing(tmp_path: Path, bounding: str, missing: list[str]) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/cap_last_cap").write_text("40\n")
    (tmp_path / "self").mkdir()
    (tmp_path / "self/status").write_text(f"Name:\tx\nCapBnd:\t{bounding}\n")

    assert missing_capabilities(tmp_path) == missing
