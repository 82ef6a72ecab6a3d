from __future__ import annotations

import pytest

from lab import parts
from lab.node_image import BINARIES, GVISOR_BINARIES
from lab.talk import LabError


def test_the_version_of_a_part_is_the_one_its_module_requires() -> None:
    assert parts.pinned("etcd", "go.etcd.io/etcd/server/v3").startswith("v3.")


def test_a_module_that_a_part_does_not_require_is_an_error() -> None:
    with pytest.raises(LabError, match="does not require"):
        parts.pinned("etcd", "example.com/nothing")


@pytest.mark.parametrize(
    "part", [*parts.NODE_PARTS, parts.GVISOR, parts.KIND, parts.HELM, parts.POLICIES], ids=lambda part: part.name
)
def test_every_part_is_pinned_with_checksums_or_has_no_dependency(part: parts.Part) -> None:
    requires = "require" in (part.source / "go.mod").read_text()

    assert (part.source / "go.sum").exists() == requires


def test_no_two_programs_of_a_node_share_a_name() -> None:
    assert not BINARIES.keys() & GVISOR_BINARIES.keys()
